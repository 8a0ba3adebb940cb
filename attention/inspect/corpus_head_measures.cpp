// Sums of measures over the rows of a map, in f64 and in a fixed order.
#include "heed/attention/inspect/corpus_head_measures.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/core/error.h"
#include "heed/core/io/ascii.h"

namespace heed {
namespace {

constexpr int64_t max_rank_side = 64;  // tokens or tiles per side of a map whose rank is computed

bool is_end_of_sentence(std::string_view token) {
  static constexpr std::array names = {"[EOS]", "</s>", "<eos>", "<EOS>", "[SEP]", "<|endoftext|>"};
  return std::find(names.begin(), names.end(), token) != names.end();
}

/// The rarest of the words that a query sees, its count, and the smallest count of the other words.
struct RarestWord {
  static constexpr int64_t none = std::numeric_limits<int64_t>::max();
  int64_t count = none, second_count = none;
  std::string_view word;
  bool has_tie = false;  // another word is as rare
  void add(std::string_view token, int64_t token_count) {
    if (token_count < count) {
      second_count = count;
      count = token_count;
      word = token;
      has_tie = false;
    } else if (token != word) {
      has_tie = has_tie || token_count == count;
      second_count = std::min(second_count, token_count);
    }
  }
  /// True if there are other words, and all of them are more frequent.
  bool is_unique() const { return second_count != none && !has_tie; }
};

/// The kind of each key's token, and its count in the corpus.
struct KeyKinds {
  KeyKinds(const MapView& map, const TokenCounts& counts) {
    for (const std::string& token : map.key_tokens) {
      is_special.push_back(is_special_token(token));
      is_punctuation.push_back(is_punctuation_token(token));
      is_end.push_back(is_end_of_sentence(token));
      const auto found = counts.find(token);
      count.push_back(found == counts.end() ? 0 : found->second);
    }
  }
  std::vector<bool> is_special, is_punctuation, is_end;
  std::vector<int64_t> count;
};

/// Adds the row of one query, which sees the first num_visible keys; `column_sums` [keys] gets its weights,
/// too.
void add_row(HeadSums& sums, const MapView& map, int64_t head, int64_t query, const KeyKinds& kinds,
             int64_t num_visible, std::vector<double>& column_sums) {
  const std::string& token = map.query_tokens[static_cast<size_t>(query)];
  const bool self_attention = map.kind != "cross", query_is_end = is_end_of_sentence(token);
  double max_weight_off_ends = 0, weight_on_ends = 0, max_weight = -1;
  int64_t favourite = 0;  // the key with the largest weight
  RarestWord rarest;
  for (int64_t key = 0; key < map.keys; ++key) {
    const auto k = static_cast<size_t>(key);
    const double weight = map.at(head, query, key);
    const int64_t distance = std::abs(key - query);
    sums.entropy += entropy_term(weight);
    sums.total += weight;
    sums.distance += weight * static_cast<double>(distance);
    sums.offset += weight * static_cast<double>(key - query);
    if (distance <= HeadSums::max_band) sums.band[static_cast<size_t>(distance)] += weight;  // see sums_of()
    if (!kinds.is_end[k]) max_weight_off_ends = std::max(max_weight_off_ends, weight);
    if (weight > max_weight) {
      max_weight = weight;
      favourite = key;
    }
    column_sums[k] += weight;
    if (kinds.is_punctuation[k]) sums.punctuation += weight;
    if (kinds.is_special[k]) sums.special[map.key_tokens[k]] += weight;
    if (kinds.is_end[k]) weight_on_ends += weight;
    if (map.key_tokens[k] == token && !(self_attention && key == query)) sums.same_word += weight;
    if (key < num_visible && !kinds.is_special[k]) rarest.add(map.key_tokens[k], kinds.count[k]);
  }
  sums.confidence += max_weight_off_ends;
  sums.first += map.at(head, query, 0);
  (query_is_end ? sums.end_from_end : sums.end_from_rest) += weight_on_ends;
  sums.end_rows += query_is_end ? 1 : 0;
  const auto add_neighbour = [&](int64_t key, double& sum, double& rows) {
    if (key < 0 || key >= map.keys) return;
    sum += map.at(head, query, key);
    ++rows;
  };
  add_neighbour(query, sums.self, sums.self_rows);
  add_neighbour(query - 1, sums.previous, sums.previous_rows);
  add_neighbour(query + 1, sums.next, sums.next_rows);
  if (const int64_t offset = favourite - query; std::abs(offset) <= HeadSums::max_offset)
    ++sums.at_offset[static_cast<size_t>(offset + HeadSums::max_offset)];
  if (!rarest.is_unique()) return;
  ++sums.rare_rows;
  if (kinds.is_special[static_cast<size_t>(favourite)]) return;
  const int64_t count = kinds.count[static_cast<size_t>(favourite)];
  sums.rarest += count <= rarest.count ? 1 : 0;
  sums.two_rarest += count <= rarest.second_count ? 1 : 0;
}

}  // namespace

bool is_special_token(std::string_view token) {
  if (token.size() < 3) return false;
  return (token.front() == '[' && token.back() == ']') || (token.front() == '<' && token.back() == '>');
}

bool is_punctuation_token(std::string_view token) {
  constexpr std::string_view word_mark = "\xE2\x96\x81";
  if (token.starts_with(word_mark)) token.remove_prefix(word_mark.size());
  if (token.empty() || is_special_token(token)) return false;
  static constexpr std::array<std::string_view, 11> other_marks = {"«", "»", "“", "”", "‘", "’",
                                                                   "…", "—", "–", "¿", "¡"};
  while (!token.empty()) {
    const auto c = static_cast<unsigned char>(token.front());
    if (c > 0x20 && c < 0x7F) {
      if (is_ascii_alphanumeric(token.front())) return false;
      token.remove_prefix(1);
      continue;
    }
    const auto found = std::find_if(other_marks.begin(), other_marks.end(),
                                    [&](std::string_view mark) { return token.starts_with(mark); });
    if (found == other_marks.end()) return false;
    token.remove_prefix(found->size());
  }
  return true;
}

void HeadSums::add(const HeadSums& other) {
  const auto add_members = [&](auto... member) { ((this->*member += other.*member), ...); };
  add_members(&HeadSums::examples, &HeadSums::rows, &HeadSums::entropy, &HeadSums::uniform_entropy,
              &HeadSums::information, &HeadSums::confidence, &HeadSums::distance, &HeadSums::offset,
              &HeadSums::total, &HeadSums::self, &HeadSums::previous, &HeadSums::next, &HeadSums::self_rows,
              &HeadSums::previous_rows, &HeadSums::next_rows, &HeadSums::first, &HeadSums::punctuation,
              &HeadSums::same_word, &HeadSums::end_from_end, &HeadSums::end_rows, &HeadSums::end_from_rest,
              &HeadSums::rarest, &HeadSums::two_rarest, &HeadSums::rare_rows, &HeadSums::column,
              &HeadSums::uniform_column, &HeadSums::uniform_special, &HeadSums::uniform_punctuation,
              &HeadSums::rank, &HeadSums::rank_maps);
  for (size_t i = 0; i < band.size(); ++i) band[i] += other.band[i];
  for (size_t i = 0; i < at_offset.size(); ++i) at_offset[i] += other.at_offset[i];
  for (const auto& [token, mass] : other.special) special[token] += mass;
  for (const auto& [token, times] : other.column_tokens) column_tokens[token] += times;
}

HeadSums sums_of(const MapView& map, int64_t head, const TokenCounts& counts) {
  const KeyKinds kinds(map, counts);
  const bool is_causal = map.kind != "cross" && causal(map);
  std::vector<double> column_means(static_cast<size_t>(map.keys));
  double uniform_first_column = 0;  // sum of the weights of key 0, which every query sees, with equal weights
  int64_t num_special = 0, num_punctuation = 0, num_counted = 0;  // among the keys that the query sees
  HeadSums sums;
  sums.examples = 1;
  sums.rows = static_cast<double>(map.queries);
  for (int64_t query = 0; query < map.queries; ++query) {
    const int64_t num_visible = is_causal ? query + 1 : map.keys;
    const auto visible = static_cast<double>(num_visible);
    sums.uniform_entropy += std::log(visible);
    for (; num_counted < num_visible; ++num_counted) {
      num_special += kinds.is_special[static_cast<size_t>(num_counted)] ? 1 : 0;
      num_punctuation += kinds.is_punctuation[static_cast<size_t>(num_counted)] ? 1 : 0;
    }
    uniform_first_column += 1 / visible;
    sums.uniform_special += static_cast<double>(num_special) / visible;
    sums.uniform_punctuation += static_cast<double>(num_punctuation) / visible;
    add_row(sums, map, head, query, kinds, num_visible, column_means);
  }
  // Rows add the weights at distance w alone; a band has those of smaller distances, too.
  for (size_t w = 1; w < sums.band.size(); ++w) sums.band[w] += sums.band[w - 1];
  for (double& mean : column_means) mean /= sums.rows;
  const auto favourite = std::max_element(column_means.begin(), column_means.end());
  sums.column = *favourite;
  sums.uniform_column = uniform_first_column / sums.rows;
  sums.column_tokens[map.key_tokens[static_cast<size_t>(favourite - column_means.begin())]] = 1;
  double mean_row_entropy = 0;
  for (const double mean : column_means) mean_row_entropy += entropy_term(mean);
  sums.information = std::max(0.0, mean_row_entropy * sums.rows - sums.entropy);
  return sums;
}

double rank_of_head(const MapView& map, int64_t head) {
  const MapView tiles = pooled(one_head(map, head), max_rank_side);
  return effective_rank(tiles.weights, tiles.queries, tiles.keys);
}

RepeatScores repeat_scores(const MapView& map, int64_t head, int64_t period) {
  if (map.queries != map.keys || period < 1 || map.queries <= period)
    fail("repeat_scores: a map of ", map.queries, " x ", map.keys, " is no repetition after ", period,
         " tokens. Give a square map that is longer.");
  RepeatScores out;
  for (int64_t query = period; query < map.queries; ++query)
    out.induction += map.at(head, query, query - period + 1);
  for (int64_t query = 1; query < map.queries; ++query) out.previous += map.at(head, query, query - 1);
  out.induction /= static_cast<double>(map.queries - period);
  out.previous /= static_cast<double>(map.queries - 1);
  return out;
}

}  // namespace heed
