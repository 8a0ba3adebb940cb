// Assignment by shortest augmenting paths; costs are Jensen-Shannon divergences of heads.
#include "heed/attention/inspect/head_matching.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"

namespace heed {
namespace {

constexpr int64_t matched_side = 64;  // tokens or tiles per side of maps that are compared

/// The assignment of best_assignment() for at most as many rows as columns. Each row in turn is assigned
/// along the shortest augmenting path, by reduced costs: cost - row potential - column potential, never below
/// 0.
std::vector<int64_t> assign(const std::vector<double>& costs, int64_t rows, int64_t columns) {
  const auto n = static_cast<size_t>(rows), m = static_cast<size_t>(columns);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // Indices are 1-based: row 0 and column 0 stand for none.
  std::vector<double> row_potential(n + 1), column_potential(m + 1);
  std::vector<size_t> row_of(m + 1), previous_column(m + 1);  // assigned row; predecessor on the path
  for (size_t new_row = 1; new_row <= n; ++new_row) {
    std::vector<double> path_cost(m + 1, infinity);
    std::vector<bool> is_visited(m + 1, false);
    row_of[0] = new_row;
    size_t column = 0;
    do {  // extends the path by the cheapest column until it reaches a free one
      is_visited[column] = true;
      const size_t row = row_of[column];
      double min_cost = infinity;
      size_t next_column = 0;
      for (size_t j = 1; j <= m; ++j) {
        if (is_visited[j]) continue;
        const double cost = costs[(row - 1) * m + j - 1] - row_potential[row] - column_potential[j];
        if (cost < path_cost[j]) {
          path_cost[j] = cost;
          previous_column[j] = column;
        }
        if (path_cost[j] < min_cost) {
          min_cost = path_cost[j];
          next_column = j;
        }
      }
      for (size_t j = 0; j <= m; ++j) {
        if (is_visited[j]) {
          row_potential[row_of[j]] += min_cost;
          column_potential[j] -= min_cost;
        } else {
          path_cost[j] -= min_cost;
        }
      }
      column = next_column;
    } while (row_of[column] != 0);
    for (; column != 0; column = previous_column[column]) row_of[column] = row_of[previous_column[column]];
  }
  std::vector<int64_t> column_of(n, -1);
  for (size_t j = 1; j <= m; ++j) {
    if (row_of[j] != 0) column_of[row_of[j] - 1] = static_cast<int64_t>(j) - 1;
  }
  return column_of;
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

/// The kinds of maps, each once, in the order of the maps.
std::vector<std::string> kinds_in(const std::vector<MapView>& maps) {
  std::vector<std::string> out;
  for (const MapView& map : maps) {
    if (std::find(out.begin(), out.end(), map.kind) == out.end()) out.push_back(map.kind);
  }
  return out;
}

/// The first difference between the tokens of two models, which are `side`: "queries" or "keys". Empty if
/// they are equal.
std::string why_other_tokens(const std::string& kind, const char* side, const std::vector<std::string>& first,
                             const std::vector<std::string>& second) {
  const auto quoted = [](const std::string& token) { return "'" + picture::visible(token) + "'"; };
  if (first.size() != second.size())
    return text("in ", kind, " attention one has ", first.size(), " ", side, " and the other ",
                second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] != second[i])
      return text("in ", kind, " attention, ", side, " number ", i, " is ", quoted(first[i]), " for one and ",
                  quoted(second[i]), " for the other");
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

double head_distance(const MapView& first, int64_t first_head, const MapView& second, int64_t second_head) {
  if (first.queries != second.queries || first.keys != second.keys)
    fail("head_distance: maps of ", first.queries, " x ", first.keys, " and of ", second.queries, " x ",
         second.keys, ". They must be of one input.");
  double sum = 0;
  for (int64_t query = 0; query < first.queries; ++query) {
    for (int64_t key = 0; key < first.keys; ++key) {
      const double a = std::max(0.0F, first.at(first_head, query, key)),
                   b = std::max(0.0F, second.at(second_head, query, key));
      sum += entropy_term((a + b) / 2) - (entropy_term(a) + entropy_term(b)) / 2;
    }
  }
  return std::max(0.0, sum / static_cast<double>(first.queries));
}

std::vector<HeadMatch> match_heads(const std::vector<MapView>& first, const std::vector<MapView>& second) {
  if (const std::string why = why_incomparable(first, second); !why.empty()) fail("match_heads: ", why, ".");
  std::vector<MapView> first_tiles, second_tiles;
  for (const MapView& map : first) first_tiles.push_back(pooled(map, matched_side));
  for (const MapView& map : second) second_tiles.push_back(pooled(map, matched_side));
  std::vector<HeadMatch> out;
  for (const std::string& kind : kinds_in(first)) {
    const std::vector<HeadChoice> rows = heads_of_kind(first, kind), columns = heads_of_kind(second, kind);
    std::vector<double> costs;
    for (const HeadChoice& row : rows) {
      for (const HeadChoice& column : columns)
        costs.push_back(head_distance(first_tiles[row.map], row.head, second_tiles[column.map], column.head));
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

std::string why_incomparable(const std::vector<MapView>& first, const std::vector<MapView>& second) {
  bool has_common_kind = false;
  for (const MapView& a : first) {
    for (const MapView& b : second) {
      if (a.kind != b.kind) continue;
      has_common_kind = true;
      std::string why = why_other_tokens(a.kind, "queries", a.query_tokens, b.query_tokens);
      if (why.empty()) why = why_other_tokens(a.kind, "keys", a.key_tokens, b.key_tokens);
      if (!why.empty()) return why;
    }
  }
  if (has_common_kind) return "";
  const auto kinds_text = [](const std::vector<MapView>& maps) {
    return maps.empty() ? "no maps" : picture::joined(kinds_in(maps));
  };
  return text("they have no kind of attention in common: one has ", kinds_text(first), ", the other ",
              kinds_text(second));
}

}  // namespace heed
