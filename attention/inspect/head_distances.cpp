// Sums divergences row by row, and clusters heads by average linkage.
#include "heed/attention/inspect/head_distances.h"

#include <algorithm>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/core/error.h"

namespace heed {
namespace {

constexpr int64_t max_rows = 32;  // rows of a map that are compared

/// Rows of a head: weights [rows, keys], not negative and of sum 1 in each row, and the entropy of each row.
struct RowsOfHead {
  std::vector<double> weights, entropy;
};

RowsOfHead rows_of_head(const MapView& map, int64_t head, const std::vector<int64_t>& rows) {
  RowsOfHead out;
  for (const int64_t query : rows) {
    double sum = 0, entropy = 0;
    const size_t row_begin = out.weights.size();
    for (int64_t key = 0; key < map.keys; ++key) {
      out.weights.push_back(std::max(0.0F, map.at(head, query, key)));
      sum += out.weights.back();
    }
    for (size_t i = row_begin; i < out.weights.size(); ++i) {
      double& weight = out.weights[i];
      weight = sum > 0 ? weight / sum : 1.0 / static_cast<double>(map.keys);
      entropy += entropy_term(weight);
    }
    out.entropy.push_back(entropy);
  }
  return out;
}

/// The sum over rows of the Jensen-Shannon divergence of two heads: the entropy of the mean row less the mean
/// entropy of the rows.
double divergence(const RowsOfHead& a, const RowsOfHead& b) {
  double entropy = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) entropy += entropy_term((a.weights[i] + b.weights[i]) / 2);
  double mean_entropy = 0;  // mean of the entropies of both heads, summed over rows
  for (size_t row = 0; row < a.entropy.size(); ++row) mean_entropy += (a.entropy[row] + b.entropy[row]) / 2;
  return std::max(0.0, entropy - mean_entropy);
}

/// At most max_rows rows at equal distances.
std::vector<int64_t> compared_rows(int64_t queries) {
  std::vector<int64_t> rows;
  const int64_t count = std::min(queries, max_rows);
  for (int64_t i = 0; i < count; ++i) rows.push_back(i * queries / count);
  return rows;
}

}  // namespace

void HeadDistances::add(const std::vector<MapView>& maps) {
  std::vector<std::string> kinds;  // in the order of the maps
  for (const MapView& map : maps) {
    if (std::find(kinds.begin(), kinds.end(), map.kind) == kinds.end()) kinds.push_back(map.kind);
  }
  for (const std::string& kind : kinds) {
    const MapView* first = nullptr;  // first map of this kind
    std::vector<RowsOfHead> heads;
    std::vector<std::pair<size_t, int64_t>> names;
    for (size_t i = 0; i < maps.size(); ++i) {
      const MapView& map = maps[i];
      if (map.kind != kind) continue;
      if (first == nullptr) first = &map;
      if (map.queries != first->queries || map.keys != first->keys)
        fail("head distances: maps of one kind differ in size: ", map.queries, " x ", map.keys, " and ",
             first->queries, " x ", first->keys, ".");
      for (int64_t head = 0; head < map.heads; ++head) {
        heads.push_back(rows_of_head(map, head, compared_rows(map.queries)));
        names.emplace_back(i, head);
      }
    }
    Sums& sums = sums_[kind];
    if (sums.heads.empty()) {
      kinds_.push_back(kind);
      sums.heads = names;
      sums.divergences.resize(heads.size() * heads.size());
    }
    if (sums.heads != names) fail("head distances: the maps of an example are not those of the first one.");
    for (size_t a = 0; a < heads.size(); ++a)
      for (size_t b = a + 1; b < heads.size(); ++b)
        sums.divergences[a * heads.size() + b] += divergence(heads[a], heads[b]);
    sums.rows += static_cast<double>(std::min(first->queries, max_rows));
  }
}

std::vector<HeadDistances::Group> HeadDistances::groups() const {
  std::vector<Group> out;
  for (const std::string& kind : kinds_) {
    const Sums& sums = sums_.at(kind);
    const size_t n = sums.heads.size();
    Group group{.kind = kind, .heads = sums.heads, .distances = std::vector<double>(n * n), .order = {}};
    for (size_t a = 0; a < n; ++a)
      for (size_t b = a + 1; b < n; ++b)
        group.distances[a * n + b] = group.distances[b * n + a] = sums.divergences[a * n + b] / sums.rows;
    group.order = dendrogram_order(group.distances, n);
    out.push_back(std::move(group));
  }
  return out;
}

std::vector<size_t> dendrogram_order(const std::vector<double>& distances, size_t n) {
  std::vector<std::vector<size_t>> clusters;
  for (size_t i = 0; i < n; ++i) clusters.push_back({i});
  const auto mean_distance = [&](const std::vector<size_t>& a, const std::vector<size_t>& b) {
    double sum = 0;
    for (const size_t i : a)
      for (const size_t j : b) sum += distances[i * n + j];
    return sum / static_cast<double>(a.size() * b.size());
  };
  while (clusters.size() > 1) {
    size_t left = 0, right = 1;
    double min_distance = mean_distance(clusters[0], clusters[1]);
    for (size_t a = 0; a < clusters.size(); ++a)
      for (size_t b = a + 1; b < clusters.size(); ++b)
        if (const double distance = mean_distance(clusters[a], clusters[b]); distance < min_distance) {
          min_distance = distance;
          left = a;
          right = b;
        }
    clusters[left].insert(clusters[left].end(), clusters[right].begin(), clusters[right].end());
    clusters.erase(clusters.begin() + static_cast<int64_t>(right));
  }
  return n > 0 ? clusters[0] : std::vector<size_t>{};
}

}  // namespace heed
