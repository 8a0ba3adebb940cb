// Assignment by shortest augmenting paths; costs are Jensen-Shannon divergences of heads.
#include "heed/attention/inspect/head_matching.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

constexpr int64_t matched_side = 64;

/// The assignment of best_assignment() for at most as many rows as columns.
std::vector<int64_t> assign(const std::vector<double>& costs, int64_t rows, int64_t columns) {
  const auto n = static_cast<size_t>(rows), m = static_cast<size_t>(columns);
  constexpr double far = std::numeric_limits<double>::infinity();
  // 1-based: row 0 and column 0 stand for none.
  std::vector<double> of_row(n + 1), of_column(m + 1);
  std::vector<size_t> row_of(m + 1), before(m + 1);
  for (size_t row = 1; row <= n; ++row) {
    std::vector<double> least(m + 1, far);
    std::vector<bool> done(m + 1, false);
    row_of[0] = row;
    size_t column = 0;
    do {  // grow the path from the unassigned row by the cheapest column until a free one is reached
      done[column] = true;
      const size_t from = row_of[column];
      double step = far;
      size_t next = 0;
      for (size_t to = 1; to <= m; ++to) {
        if (done[to]) continue;
        const double cost = costs[(from - 1) * m + to - 1] - of_row[from] - of_column[to];
        if (cost < least[to]) {
          least[to] = cost;
          before[to] = column;
        }
        if (least[to] < step) {
          step = least[to];
          next = to;
        }
      }
      for (size_t to = 0; to <= m; ++to) {
        if (done[to]) {
          of_row[row_of[to]] += step;
          of_column[to] -= step;
        } else {
          least[to] -= step;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = before[column]) row_of[column] = row_of[before[column]];
  }
  std::vector<int64_t> out(n, -1);
  for (size_t to = 1; to <= m; ++to) {
    if (row_of[to] != 0) out[row_of[to] - 1] = static_cast<int64_t>(to) - 1;
  }
  return out;
}

/// The heads of one kind, over all maps.
std::vector<HeadChoice> heads_of_kind(const std::vector<MapView>& maps, const std::string& kind) {
  std::vector<HeadChoice> out;
  for (size_t map = 0; map < maps.size(); ++map) {
    for (int64_t head = 0; maps[map].kind == kind && head < maps[map].heads; ++head)
      out.push_back({map, head});
  }
  return out;
}

std::vector<std::string> kinds_in(const std::vector<MapView>& maps) {
  std::vector<std::string> out;
  for (const MapView& map : maps) {
    if (std::find(out.begin(), out.end(), map.kind) == out.end()) out.push_back(map.kind);
  }
  return out;
}

std::string why_other_tokens(const std::string& kind, const char* what, const std::vector<std::string>& one,
                             const std::vector<std::string>& other) {
  const auto quoted = [](const std::string& token) { return "'" + picture::visible(token) + "'"; };
  if (one.size() != other.size())
    return text("in ", kind, " attention one has ", one.size(), " ", what, " and the other ", other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] != other[i])
      return text("in ", kind, " attention, ", what, " number ", i, " is ", quoted(one[i]), " for one and ",
                  quoted(other[i]), " for the other");
  }
  return "";
}

}  // namespace

std::vector<int64_t> best_assignment(const std::vector<double>& costs, int64_t rows, int64_t columns) {
  if (rows < 0 || columns < 0 || costs.size() != static_cast<size_t>(rows * columns))
    fail("best_assignment: ", costs.size(), " costs for ", rows, " rows and ", columns, " columns.");
  for (const double cost : costs) {
    if (!std::isfinite(cost)) fail("best_assignment: a cost is not finite.");
  }
  if (rows <= columns) return assign(costs, rows, columns);
  std::vector<double> transposed(costs.size());
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      transposed[static_cast<size_t>(column * rows + row)] =
          costs[static_cast<size_t>(row * columns + column)];
  }
  std::vector<int64_t> out(static_cast<size_t>(rows), -1);
  const std::vector<int64_t> of_column = assign(transposed, columns, rows);
  for (size_t column = 0; column < of_column.size(); ++column)
    out[static_cast<size_t>(of_column[column])] = static_cast<int64_t>(column);
  return out;
}

double head_distance(const MapView& one, int64_t head, const MapView& other, int64_t other_head) {
  if (one.queries != other.queries || one.keys != other.keys)
    fail("head_distance: maps of ", one.queries, " x ", one.keys, " and of ", other.queries, " x ",
         other.keys, ". They must be of one input.");
  double sum = 0;
  for (int64_t query = 0; query < one.queries; ++query) {
    for (int64_t key = 0; key < one.keys; ++key) {
      const double a = std::max(0.0F, one.at(head, query, key)),
                   b = std::max(0.0F, other.at(other_head, query, key));
      sum += entropy_term((a + b) / 2) - (entropy_term(a) + entropy_term(b)) / 2;
    }
  }
  return std::max(0.0, sum / static_cast<double>(one.queries));
}

std::vector<HeadMatch> match_heads(const std::vector<MapView>& one, const std::vector<MapView>& other) {
  if (const std::string why = why_incomparable(one, other); !why.empty()) fail("match_heads: ", why, ".");
  std::vector<MapView> a, b;
  for (const MapView& map : one) a.push_back(pooled(map, matched_side));
  for (const MapView& map : other) b.push_back(pooled(map, matched_side));
  std::vector<HeadMatch> out;
  for (const std::string& kind : kinds_in(one)) {
    const std::vector<HeadChoice> rows = heads_of_kind(one, kind), columns = heads_of_kind(other, kind);
    std::vector<double> costs;
    for (const HeadChoice& row : rows) {
      for (const HeadChoice& column : columns)
        costs.push_back(head_distance(a[row.map], row.head, b[column.map], column.head));
    }
    const std::vector<int64_t> column_of =
        best_assignment(costs, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()));
    for (size_t row = 0; row < rows.size(); ++row) {
      HeadMatch match{.one = rows[row]};
      if (column_of[row] >= 0) {
        match.other = columns[static_cast<size_t>(column_of[row])];
        match.distance = costs[row * columns.size() + static_cast<size_t>(column_of[row])];
      }
      out.push_back(match);
    }
  }
  return out;
}

std::string why_incomparable(const std::vector<MapView>& one, const std::vector<MapView>& other) {
  const std::vector<std::string> kinds = kinds_in(one), others = kinds_in(other);
  bool common = false;
  for (const MapView& map : one) {
    for (const MapView& its : other) {
      if (map.kind != its.kind) continue;
      common = true;
      for (const auto& [what, first, second] : {std::tuple{"queries", &map.query_tokens, &its.query_tokens},
                                                std::tuple{"keys", &map.key_tokens, &its.key_tokens}}) {
        if (std::string why = why_other_tokens(map.kind, what, *first, *second); !why.empty()) return why;
      }
    }
  }
  if (common) return "";
  const auto listed = [](const std::vector<std::string>& all) {
    return all.empty() ? "no maps" : picture::joined(all);
  };
  return text("they have no kind of attention in common: one has ", listed(kinds), ", the other ",
              listed(others));
}

}  // namespace heed
