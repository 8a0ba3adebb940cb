// Sums of measures over the rows of a map, in f64 and in a fixed order.
#include "heed/attention/inspect/corpus_head_measures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "heed/attention/inspect/single_map_statistics.h"
#include "heed/core/error.h"

namespace heed {
namespace {

constexpr int64_t rank_tiles = 64;

bool ends(std::string_view token) {
  static constexpr std::array names = {"[EOS]", "</s>", "<eos>", "<EOS>", "[SEP]", "<|endoftext|>"};
  return std::find(names.begin(), names.end(), token) != names.end();
}

/// How rare the words are that a query sees: the rarest one and its count, and the second least count.
struct Rarity {
  static constexpr int64_t none = std::numeric_limits<int64_t>::max();
  int64_t least = none, second = none;
  std::string_view rarest;
  bool tie = false;
  void see(std::string_view token, int64_t count) {
    if (count < least) {
      second = least;
      least = count;
      rarest = token;
      tie = false;
    } else if (token != rarest) {
      tie = tie || count == least;
      second = std::min(second, count);
    }
  }
  /// True if there are other words, and all of them are more frequent.
  bool is_clear() const { return second != none && !tie; }
};

/// What is known of a map's tokens, for all rows.
struct KeyKinds {
  KeyKinds(const MapView& map, const TokenCounts& counts) {
    for (const std::string& token : map.key_tokens) {
      special.push_back(is_special_token(token));
      punctuation.push_back(is_punctuation_token(token));
      end.push_back(ends(token));
      const auto found = counts.find(token);
      count.push_back(found == counts.end() ? 0 : found->second);
    }
  }
  std::vector<bool> special, punctuation, end;
  std::vector<int64_t> count;
};

/// Adds the row of one query.
void add_row(HeadSums& out, const MapView& map, int64_t head, int64_t query, const KeyKinds& kinds,
             int64_t visible, std::vector<double>& column) {
  const std::string& token = map.query_tokens[static_cast<size_t>(query)];
  const bool self_attention = map.kind != "cross", end_query = ends(token);
  double largest = 0, end_mass = 0, peak = -1;
  int64_t chosen = 0;
  Rarity rarity;
  for (int64_t key = 0; key < map.keys; ++key) {
    const auto k = static_cast<size_t>(key);
    const double weight = map.at(head, query, key);
    const int64_t away = std::abs(key - query);
    out.entropy += entropy_term(weight);
    out.total += weight;
    out.distance += weight * static_cast<double>(away);
    out.offset += weight * static_cast<double>(key - query);
    if (away <= HeadSums::max_band) out.band[static_cast<size_t>(away)] += weight;  // summed up at the end
    if (!kinds.end[k]) largest = std::max(largest, weight);
    if (weight > peak) {
      peak = weight;
      chosen = key;
    }
    column[k] += weight;
    if (kinds.punctuation[k]) out.punctuation += weight;
    if (kinds.special[k]) out.special[map.key_tokens[k]] += weight;
    if (kinds.end[k]) end_mass += weight;
    if (map.key_tokens[k] == token && !(self_attention && key == query)) out.same_word += weight;
    if (key < visible && !kinds.special[k]) rarity.see(map.key_tokens[k], kinds.count[k]);
  }
  out.confidence += largest;
  out.first += map.at(head, query, 0);
  (end_query ? out.end_from_end : out.end_from_rest) += end_mass;
  out.end_rows += end_query ? 1 : 0;
  const auto beside = [&](int64_t key, double& sum, double& rows) {
    if (key < 0 || key >= map.keys) return;
    sum += map.at(head, query, key);
    ++rows;
  };
  beside(query, out.self, out.self_rows);
  beside(query - 1, out.previous, out.previous_rows);
  beside(query + 1, out.next, out.next_rows);
  if (const int64_t offset = chosen - query; std::abs(offset) <= HeadSums::max_offset)
    ++out.at_offset[static_cast<size_t>(offset + HeadSums::max_offset)];
  if (!rarity.is_clear()) return;
  ++out.rare_rows;
  if (kinds.special[static_cast<size_t>(chosen)]) return;
  const int64_t count = kinds.count[static_cast<size_t>(chosen)];
  out.rarest += count <= rarity.least ? 1 : 0;
  out.two_rarest += count <= rarity.second ? 1 : 0;
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
  static constexpr std::array<std::string_view, 11> longer = {"«", "»", "“", "”", "‘", "’",
                                                              "…", "—", "–", "¿", "¡"};
  while (!token.empty()) {
    const auto c = static_cast<unsigned char>(token.front());
    if (c > 0x20 && c < 0x7F) {
      const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      if (letter) return false;
      token.remove_prefix(1);
      continue;
    }
    const auto found = std::find_if(longer.begin(), longer.end(),
                                    [&](std::string_view mark) { return token.starts_with(mark); });
    if (found == longer.end()) return false;
    token.remove_prefix(found->size());
  }
  return true;
}

void HeadSums::add(const HeadSums& other) {
  const auto each = [&](auto... field) { ((this->*field += other.*field), ...); };
  each(&HeadSums::examples, &HeadSums::rows, &HeadSums::entropy, &HeadSums::uniform_entropy,
       &HeadSums::information, &HeadSums::confidence, &HeadSums::distance, &HeadSums::offset,
       &HeadSums::total, &HeadSums::self, &HeadSums::previous, &HeadSums::next, &HeadSums::self_rows,
       &HeadSums::previous_rows, &HeadSums::next_rows, &HeadSums::first, &HeadSums::punctuation,
       &HeadSums::same_word, &HeadSums::end_from_end, &HeadSums::end_rows, &HeadSums::end_from_rest,
       &HeadSums::rarest, &HeadSums::two_rarest, &HeadSums::rare_rows, &HeadSums::column,
       &HeadSums::uniform_column, &HeadSums::uniform_special, &HeadSums::uniform_punctuation, &HeadSums::rank,
       &HeadSums::rank_maps);
  for (size_t i = 0; i < band.size(); ++i) band[i] += other.band[i];
  for (size_t i = 0; i < at_offset.size(); ++i) at_offset[i] += other.at_offset[i];
  for (const auto& [token, mass] : other.special) special[token] += mass;
  for (const auto& [token, times] : other.column_tokens) column_tokens[token] += times;
}

HeadSums sums_of(const MapView& map, int64_t head, const TokenCounts& counts) {
  const KeyKinds kinds(map, counts);
  const bool causal_map = map.kind != "cross" && causal(map);
  std::vector<double> column(static_cast<size_t>(map.keys));
  double first_column = 0;  // sum of the weights of key 0, visible to all queries, in a uniform map
  int64_t special = 0, punctuation = 0, counted = 0;
  HeadSums out;
  out.examples = 1;
  out.rows = static_cast<double>(map.queries);
  for (int64_t query = 0; query < map.queries; ++query) {
    const int64_t visible = causal_map ? query + 1 : map.keys;
    out.uniform_entropy += std::log(static_cast<double>(visible));
    for (; counted < visible; ++counted) {
      special += kinds.special[static_cast<size_t>(counted)] ? 1 : 0;
      punctuation += kinds.punctuation[static_cast<size_t>(counted)] ? 1 : 0;
    }
    first_column += 1 / static_cast<double>(visible);
    out.uniform_special += static_cast<double>(special) / static_cast<double>(visible);
    out.uniform_punctuation += static_cast<double>(punctuation) / static_cast<double>(visible);
    add_row(out, map, head, query, kinds, visible, column);
  }
  for (size_t width = 1; width < out.band.size(); ++width) out.band[width] += out.band[width - 1];
  for (double& mass : column) mass /= out.rows;
  const auto favourite = std::max_element(column.begin(), column.end());
  out.column = *favourite;
  out.uniform_column = first_column / out.rows;
  out.column_tokens[map.key_tokens[static_cast<size_t>(favourite - column.begin())]] = 1;
  double mean_row = 0;
  for (const double mass : column) mean_row += entropy_term(mass);
  out.information = std::max(0.0, mean_row * out.rows - out.entropy);
  return out;
}

double rank_of_head(const MapView& map, int64_t head) {
  const MapView small = pooled(one_head(map, head), rank_tiles);
  return effective_rank(small.weights, small.queries, small.keys);
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
