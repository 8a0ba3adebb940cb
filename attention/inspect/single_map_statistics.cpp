// Computes statistics of heads, summing in f64 in a fixed order.
#include "heed/attention/inspect/single_map_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "heed/core/error.h"

namespace heed {
namespace {

bool ends_sentence(std::string_view token) {
  return token == "</s>" || token == "<eos>" || token == "<EOS>" || token == "[SEP]" ||
         token == "<|endoftext|>";
}

/// Mean weight on the key at a fixed offset from the query, over the rows where that key exists.
double mean_weight_at(const MapView& map, int64_t head, int64_t offset) {
  double sum = 0;
  int64_t rows = 0;
  for (int64_t query = 0; query < map.queries; ++query) {
    const int64_t key = query + offset;
    if (key < 0 || key >= map.keys) continue;
    sum += map.at(head, query, key);
    ++rows;
  }
  return rows ? sum / static_cast<double>(rows) : 0.0;
}

/// Mean entropy of rows with equal weights on all visible keys.
double uniform_entropy(const MapView& map) {
  if (!causal(map)) return std::log(static_cast<double>(map.keys));
  double sum = 0;
  for (int64_t query = 0; query < map.queries; ++query) sum += std::log(static_cast<double>(query + 1));
  return sum / static_cast<double>(map.queries);
}

/// All statistics of one head but uniform_entropy, which all heads of a map share.
HeadStatistics statistics_of(const MapView& map, int64_t head) {
  HeadStatistics out;
  const bool has_end = map.keys > 1 && ends_sentence(map.key_tokens.back());
  const int64_t num_keys_without_end = has_end ? map.keys - 1 : map.keys;
  std::vector<double> column_means(static_cast<size_t>(map.keys));
  for (int64_t query = 0; query < map.queries; ++query) {
    double max_weight = 0;
    for (int64_t key = 0; key < map.keys; ++key) {
      const double weight = map.at(head, query, key);
      const int64_t distance = std::abs(key - query);
      out.entropy += entropy_term(weight);
      out.distance += weight * static_cast<double>(distance);
      out.offset += weight * static_cast<double>(key - query);
      for (size_t w = static_cast<size_t>(distance); w < out.band.size(); ++w) out.band[w] += weight;
      if (key < num_keys_without_end) max_weight = std::max(max_weight, weight);
      column_means[static_cast<size_t>(key)] += weight;
    }
    out.confidence += max_weight;
  }
  const auto rows = static_cast<double>(map.queries);
  for (double* sum : {&out.entropy, &out.distance, &out.offset, &out.confidence}) *sum /= rows;
  for (double& sum : out.band) sum /= rows;
  for (double& sum : column_means) sum /= rows;
  out.favourite = std::max_element(column_means.begin(), column_means.end()) - column_means.begin();
  out.favourite_mass = column_means[static_cast<size_t>(out.favourite)];
  double mean_row_entropy = 0;
  for (const double mean : column_means) mean_row_entropy += entropy_term(mean);
  out.information = std::max(0.0, mean_row_entropy - out.entropy);
  out.diagonal = mean_weight_at(map, head, 0);
  out.previous = mean_weight_at(map, head, -1);
  out.next = mean_weight_at(map, head, 1);
  return out;
}

}  // namespace

double entropy_term(double weight) { return weight > 0 ? -weight * std::log(weight) : 0.0; }

bool causal(const MapView& map) {
  if (map.queries != map.keys) return false;
  for (int64_t head = 0; head < map.heads; ++head)
    for (int64_t query = 0; query < map.queries; ++query)
      for (int64_t key = query + 1; key < map.keys; ++key)
        if (map.at(head, query, key) != 0) return false;
  return true;
}

std::vector<HeadStatistics> head_statistics(const MapView& map) {
  check(map);
  const double uniform = uniform_entropy(map);
  std::vector<HeadStatistics> out;
  for (int64_t head = 0; head < map.heads; ++head) {
    out.push_back(statistics_of(map, head));
    out.back().uniform_entropy = uniform;
  }
  return out;
}

namespace {

/// The sharpest head of the maps of one kind, or of all where `kind` is empty.
HeadChoice sharpest_of_kind(const std::vector<MapView>& maps, std::string_view kind) {
  HeadChoice best;
  double max_information = -1;
  for (size_t map = 0; map < maps.size(); ++map) {
    if (!kind.empty() && maps[map].kind != kind) continue;
    const auto heads = head_statistics(maps[map]);
    for (size_t head = 0; head < heads.size(); ++head)
      if (heads[head].information > max_information) {
        max_information = heads[head].information;
        best = {map, static_cast<int64_t>(head)};
      }
  }
  return best;
}

}  // namespace

HeadChoice sharpest_head(const std::vector<MapView>& maps) {
  if (maps.empty()) fail("sharpest_head: there is no map. Give at least one.");
  return sharpest_of_kind(maps, "");
}

HeadChoice first_head(const std::vector<MapView>& maps) {
  const bool has_cross =
      std::any_of(maps.begin(), maps.end(), [](const MapView& map) { return map.kind == "cross"; });
  return has_cross ? sharpest_of_kind(maps, "cross") : sharpest_head(maps);
}

}  // namespace heed
