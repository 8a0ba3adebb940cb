// Writes a head report as JSON and as a table.
#include <algorithm>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/table_text.h"
#include "heed/train/inspect/head_report.h"

namespace heed {
namespace {

/// The `max_count` tokens with the largest numbers, the largest first.
std::vector<std::pair<std::string, double>> largest_first(const std::map<std::string, double>& numbers,
                                                          size_t max_count) {
  std::vector<std::pair<std::string, double>> list(numbers.begin(), numbers.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  list.resize(std::min(list.size(), max_count));
  return list;
}

Json agreement_json(const AlignmentAgreement& agreement) {
  return Json::object(
      {{"accuracy", agreement.accuracy()}, {"baseline", agreement.baseline}, {"links", agreement.links}});
}

Json entry_json(const HeadEntry& head) {
  Json out = Json::object({{"name", head.name},
                           {"module", head.module},
                           {"kind", head.kind},
                           {"layer", head.layer},
                           {"head", head.head}});
  Json roles{Json::List{}}, measures = Json::object(), special = Json::object(), columns{Json::List{}},
                            offsets{Json::List{}};
  for (const HeadRole& role : head.roles)
    roles.push(Json::object({{"name", role.name}, {"evidence", role.evidence}}));
  for (const auto& [name, value] : measures_of(head.sums)) measures.set(name, value);
  for (const auto& [token, mass] : head.sums.special) special.set(token, mass / head.sums.rows);
  for (const auto& [token, times] : largest_first(head.sums.column_tokens, 10))
    columns.push(Json::object({{"token", token}, {"maps", times / head.sums.examples}}));
  for (const double rows : head.sums.at_offset) offsets.push(rows / head.sums.rows);
  out.set("roles", std::move(roles)).set("measures", std::move(measures)).set("special", std::move(special));
  out.set("column_tokens", std::move(columns)).set("rows_by_offset", std::move(offsets));
  if (head.evidence.repeats) {
    out.set("repeated_sequences", Json::object({{"induction", head.evidence.repeats->induction},
                                                {"previous", head.evidence.repeats->previous}}));
  }
  if (head.evidence.alignment) {
    Json alignment = agreement_json(*head.evidence.alignment), kinds = Json::object();
    for (const auto& [kind, agreement] : head.links) kinds.set(kind, agreement_json(agreement));
    out.set("word_alignment", std::move(alignment.set("kinds", std::move(kinds))));
  }
  Json examples{Json::List{}};
  for (const HeadExample& one : head.best)
    examples.push(Json::object({{"number", one.number}, {"caption", one.caption}, {"score", one.score}}));
  return out.set("chosen_by", head.chosen_by).set("examples", std::move(examples));
}

std::string role_words(const HeadEntry& head) {
  if (head.roles.empty()) return "-";
  return picture::joined(head.roles, ", ", [](const HeadRole& role) { return role.name; });
}

}  // namespace

Json head_report_json(const HeadReport& report) {
  Json heads{Json::List{}}, groups{Json::List{}};
  for (const HeadEntry& head : report.heads) heads.push(entry_json(head));
  for (const HeadDistances::Group& group : report.groups) {
    const size_t n = group.heads.size();
    Json names{Json::List{}}, rows{Json::List{}}, order{Json::List{}};
    for (const HeadEntry& head : report.heads)
      if (head.kind == group.kind) names.push(head.name);
    for (size_t a = 0; a < n; ++a) {
      const auto row = group.distances.begin() + static_cast<std::ptrdiff_t>(a * n);
      rows.push(Json::List(row, row + static_cast<std::ptrdiff_t>(n)));
    }
    for (const size_t index : group.order) order.push(static_cast<int64_t>(index));
    groups.push(Json::object({{"kind", group.kind},
                              {"heads", std::move(names)},
                              {"order", std::move(order)},
                              {"nats", std::move(rows)}}));
  }
  return Json::object({{"examples", report.examples},
                       {"seconds", report.seconds},
                       {"heads", std::move(heads)},
                       {"jensen_shannon", std::move(groups)}});
}

std::string head_report_text(const HeadReport& report) {
  std::vector<TableRow> rows{{"head", "entropy", "log n", "conf.", "self", "prev", "next", "first", "spec.",
                              "rank", "align", "role"}};
  for (const HeadEntry& head : report.heads) {
    std::map<std::string, double> m;
    for (const auto& [name, value] : measures_of(head.sums)) m[name] = value;
    rows.push_back({head.name});
    for (const char* measure :
         {"entropy", "uniform_entropy", "confidence", "self", "previous", "next", "first", "special"})
      rows.back().push_back(picture::fixed(m[measure], 2));
    rows.back().push_back(picture::fixed(m["effective_rank"], 1));
    rows.back().push_back(head.evidence.alignment ? picture::fixed(head.evidence.alignment->accuracy(), 2)
                                                  : "-");
    rows.back().push_back(role_words(head));
  }
  return aligned_table(rows, {.alignment = "lrrrrrrrrrrl", .indent = 2}) +
         "\n  log n: entropy of equal weights; conf.: largest weight of a row; self, prev, next, first, "
         "spec.: weight on the query's own position, the one before, the one after, the first token, special "
         "tokens; rank: effective rank; align: share of words whose largest weight is on the word that they "
         "translate\n";
}

}  // namespace heed
