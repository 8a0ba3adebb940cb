// The structure of heads as text, JSON and a page.
#include "heed/train/report/structure_report.h"

#include <algorithm>
#include <cmath>

#include "heed/attention/inspect/html_page.h"
#include "heed/attention/inspect/map_page.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/table_text.h"
#include "heed/core/io/terminal.h"
#include "heed/train/report/report.h"

namespace heed {
namespace {

/// The maps among the heads, each once, in their order.
std::vector<std::string> maps_among(const std::vector<AnalysedHead>& heads) {
  std::vector<std::string> out;
  for (const AnalysedHead& one : heads) {
    if (std::find(out.begin(), out.end(), one.map) == out.end()) out.push_back(one.map);
  }
  return out;
}

/// A cell of a table: right-aligned under its name.
struct TableCell {
  std::string name, value;
};

std::vector<TableCell> cells_of(const AnalysedHead& one) {
  const HeadStructure& s = one.structure;
  std::vector<TableCell> out{{"head", text(one.head)},
                             {"tokens", text(s.size)},
                             {"rank", text(s.rank)},
                             {"2-norm", picture::fixed(s.spectral, 2)}};
  for (const ComparedMatrix& matrix : s.matrices)
    out.push_back({matrix.name, picture::fixed(matrix.entrywise, 2)});
  return out;
}

/// The widths at which the terminal shows the sweep.
std::vector<size_t> shown_widths(const HeadStructure& s) {
  std::vector<size_t> out;
  for (const size_t w : {0, 1, 2, 3, 5, 8, 10, 16, 24, 32}) {
    if (w < s.sweep.size()) out.push_back(w);
  }
  return out;
}

/// The cells of several heads as a table for terminals, all aligned to the right.
std::string text_table(const std::vector<std::vector<TableCell>>& heads) {
  std::vector<TableRow> rows(1);
  for (const TableCell& cell : heads.front()) rows[0].push_back(cell.name);
  for (const std::vector<TableCell>& cells : heads) {
    rows.emplace_back();
    for (const TableCell& cell : cells) rows.back().push_back(cell.value);
  }
  return aligned_table(rows, {.alignment = std::string(rows[0].size(), 'r'), .indent = 2});
}

/// What a reader has to know about the maps besides the distances.
std::string remarks_of(const std::vector<AnalysedHead>& heads, const std::string& map) {
  double min_row = INFINITY, max_row = -INFINITY;
  int64_t below = 0, count = 0, maps = 0;
  for (const AnalysedHead& one : heads) {
    if (one.map != map) continue;
    min_row = std::min(min_row, one.structure.min_row_sum);
    max_row = std::max(max_row, one.structure.max_row_sum);
    maps = one.num_maps;
    ++count;
    below += one.structure.of("uniform").entrywise < one.structure.nearest() ? 1 : 0;
  }
  std::string out;
  if (maps > 1) out += text("Means over ", maps, " maps of each head.\n");
  if (min_row < 0.999 || max_row > 1.001)
    out += text("Rows sum to ", picture::fixed(min_row, 2), " to ", picture::fixed(max_row, 2),
                ": dropout was on when these maps were taken, or the attention does not normalise.\n");
  if (below > 0)
    out += text("Equal weights are nearer to ", below, " of ", count, count == 1 ? " head" : " heads",
                " than any diagonal, band or bar matrix is.\n");
  return out;
}

std::string families_text(const StructureOptions& o) {
  std::string out = text("sum of absolute differences to the nearest diagonal, band (w = ", o.width,
                         ") and bars (", o.num_pos, " of height ", o.width, ")");
  if (o.dropout > 0) out += text("; of a row's band ", o.dropout, " is zero");
  if (o.eps > 0)
    out +=
        text("; with at most ", o.errors, o.errors == 1 ? " error" : " errors", " a row of at most ", o.eps);
  return out;
}

/// The heading of a column of the page's table in words; the terminal's is an abbreviation.
std::string heading_of(const std::string& column) {
  if (column == "2-norm") return "largest singular value";
  if (column == "rank") return "numerical rank";
  return column == "head" || column == "tokens" ? column : "distance to " + column;
}

std::string distances_table(const std::vector<AnalysedHead>& heads, const std::string& map) {
  std::string rows;
  std::vector<std::string> headings;
  for (const AnalysedHead& one : heads) {
    if (one.map != map) continue;
    headings.clear();
    std::string row;
    for (const TableCell& cell : cells_of(one)) {
      row += headings.empty() ? picture::row_head(cell.value)
                              : text("<td>", picture::escape(cell.value), "</td>");
      headings.push_back(heading_of(cell.name));
    }
    rows += text("<tr>", row, "</tr>\n");
  }
  return picture::html_table("Distances", "measures", picture::column_heads(headings), rows);
}

/// A list that explains the columns of the tables.
std::string explained_columns(const std::vector<AnalysedHead>& heads, const StructureOptions& o) {
  std::vector<std::pair<std::string, std::string>> terms{
      {"distance",
       "sum of the absolute differences of all weights; 0 for equal matrices. At most "
       "twice the number of tokens: two maps that never look at the same key."},
      {"diagonal", "the nearest matrix that has weights on the diagonal alone (a positional head)"},
      {"band", text("the nearest matrix that has weights up to ", o.width,
                    " positions to either side of the diagonal (a syntactic head)")},
      {"bars",
       text("the nearest matrix of ", o.num_pos, o.num_pos == 1 ? " vertical bar, " : " vertical bars, each ",
            o.width, o.width == 1 ? " row" : " rows", " high (a head that looks at rare words)")},
      {"search", "the nearest matrix that the random search of the thesis has found"},
      {"zero, uniform, identity",
       "no weights, equal weights, and each token's weight on itself, to compare "
       "with"},
      {"numerical rank", "how many singular values of the map are above rounding error"}};
  const auto has = [&](const std::string& name) {
    return std::any_of(heads.begin(), heads.end(), [&](const AnalysedHead& head) {
      const auto& all = head.structure.matrices;
      return std::any_of(all.begin(), all.end(),
                         [&](const ComparedMatrix& matrix) { return matrix.name == name; });
    });
  };
  std::erase_if(terms, [&](const auto& term) {
    return (term.first == "bars" || term.first == "search") && !has(term.first);
  });
  std::string out = "<dl class=\"explained\">\n";
  for (const auto& [term, words] : terms)
    out += text("<dt>", picture::escape(term), "</dt><dd>", picture::escape(words), "</dd>\n");
  return out + "</dl>\n";
}

/// The maps to look at; tokens that have no names are numbered.
std::string maps_to_look_at(std::vector<MapView> maps, const std::string& caption) {
  if (maps.empty()) return "";
  for (MapView& map : maps) {
    for (std::vector<std::string>* tokens : {&map.query_tokens, &map.key_tokens}) {
      const bool named = std::any_of(tokens->begin(), tokens->end(),
                                     [](const std::string& token) { return !token.empty(); });
      for (size_t i = 0; i < tokens->size() && !named; ++i) (*tokens)[i] = std::to_string(i);
    }
  }
  return text("<h2>Maps</h2>\n<p class=\"subtitle\">", picture::escape(caption), "</p>\n",
              maps_section(maps));
}

}  // namespace

std::string structure_text(const std::vector<AnalysedHead>& heads, const StructureOptions& options) {
  std::string out = families_text(options) + "\n";
  for (const std::string& map : maps_among(heads)) {
    std::vector<std::vector<TableCell>> distances, sweep;
    for (const AnalysedHead& one : heads) {
      if (one.map != map) continue;
      distances.push_back(cells_of(one));
      std::vector<TableCell> shares{{"head", text(one.head)}};
      for (const size_t w : shown_widths(one.structure))
        shares.push_back({text("w=", w), picture::fixed(one.structure.sweep[w] / one.structure.mass, 3)});
      sweep.push_back(std::move(shares));
    }
    out += text("\n", terminal_word(map), "\n", text_table(distances),
                "share of the attention outside the band |i - j| <= w\n", text_table(sweep),
                remarks_of(heads, map));
  }
  return out;
}

Json structure_json(const std::vector<AnalysedHead>& heads, const StructureOptions& o) {
  Json list = Json::List();
  for (const AnalysedHead& one : heads) {
    const HeadStructure& s = one.structure;
    Json distances = Json::object();
    for (const ComparedMatrix& m : s.matrices) {
      distances.append(m.name, Json::object({{"entrywise", m.entrywise},
                                             {"mean", m.mean_error},
                                             {"frobenius", m.frobenius},
                                             {"spectral", m.spectral},
                                             {"rank", m.rank},
                                             {"note", m.note}}));
    }
    Json sweep = Json::List();
    for (const double value : s.sweep) sweep.push(value);
    list.push(Json::object({{"map", one.map},
                            {"head", one.head},
                            {"maps", one.num_maps},
                            {"tokens", s.size},
                            {"mass", s.mass},
                            {"least_row_sum", s.min_row_sum},
                            {"greatest_row_sum", s.max_row_sum},
                            {"frobenius", s.frobenius},
                            {"spectral", s.spectral},
                            {"rank", s.rank},
                            {"distances", distances},
                            {"band_distance_by_width", sweep}}));
  }
  return Json::object({{"width", o.width},
                       {"num_pos", o.num_pos},
                       {"dropout", o.dropout},
                       {"eps", o.eps},
                       {"errors", o.eps > 0 ? o.errors : 0},
                       {"search_draws", o.search_draws},
                       {"seed", static_cast<int64_t>(o.seed)},
                       {"heads", list}});
}

Chart structure_chart(const std::vector<AnalysedHead>& heads, const std::string& map) {
  Chart out{.title = map + ": share of the attention outside the band",
            .x_label = "w, positions to either side of the diagonal"};
  for (const AnalysedHead& one : heads) {
    if (one.map != map) continue;
    Series line{.name = text("head ", one.head)};
    for (size_t w = 0; w < one.structure.sweep.size(); ++w) {
      line.x.push_back(static_cast<double>(w));
      line.y.push_back(one.structure.sweep[w] / one.structure.mass);
    }
    out.series.push_back(std::move(line));
  }
  return out;
}

std::string structure_page(const std::vector<AnalysedHead>& heads, const StructureOptions& options,
                           const std::string& title, const std::vector<MapView>& maps,
                           const std::string& caption) {
  std::string body = explained_columns(heads, options);
  for (const std::string& map : maps_among(heads)) {
    body += "<h2>" + picture::escape(map) + "</h2>\n" + distances_table(heads, map);
    if (const std::string remarks = remarks_of(heads, map); !remarks.empty())
      body += "<p class=\"subtitle\">" + picture::escape(remarks) + "</p>\n";
    Chart chart = structure_chart(heads, map);
    chart.title = "Share of the attention outside the band";  // the map's name stands above
    body += "<div class=\"charts\">\n" + chart_figure(chart) + "</div>\n";
  }
  body += maps_to_look_at(maps, caption);
  std::vector<std::string_view> scripts = picture::map_scripts();
  scripts.push_back(charts_script);
  return picture::page(title, families_text(options), body, scripts);
}

}  // namespace heed
