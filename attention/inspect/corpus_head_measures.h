// Measures of a head over a corpus, sums over many maps: where it looks, how sharply, and on which tokens.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// The number of times that each token occurs in the examples, for heads that attend to rare ones.
using TokenCounts = std::unordered_map<std::string, int64_t>;

/// True for marks such as `[SOS]` and `<|endoftext|>`.
bool is_special_token(std::string_view token);
/// True for a token of punctuation marks alone, past the mark of a word's beginning (U+2581).
bool is_punctuation_token(std::string_view token);

/// Sums over the rows of maps of one head, where row i has the weights a_ij of query i; those marked "per
/// map" are sums over maps. measures_of() divides them.
struct HeadSums {
  static constexpr int64_t max_band = 10;    ///< widest band
  static constexpr int64_t max_offset = 10;  ///< farthest offset that is counted by itself

  double examples = 0;         ///< number of maps
  double rows = 0;             ///< number of queries of all maps
  double entropy = 0;          ///< -sum_j a_ij log a_ij, nats; weights below zero count as zero
  double uniform_entropy = 0;  ///< entropy of equal weights on all visible keys, nats
  double information = 0;      ///< per map: (entropy of the mean row - mean entropy of rows) times rows
  double confidence = 0;       ///< largest weight, ends of sentences left out (Voita et al. 2019)
  double distance = 0;         ///< sum_j a_ij |i - j|
  double offset = 0;           ///< sum_j a_ij (j - i)
  double total = 0;            ///< sum_j a_ij: 1 after a softmax
  double self = 0;             ///< weight of key i
  double previous = 0;         ///< weight of key i - 1
  double next = 0;             ///< weight of key i + 1
  double self_rows = 0;        ///< number of queries i for which there is a key i
  double previous_rows = 0;    ///< number of queries for which there is a key i - 1
  double next_rows = 0;        ///< number of queries for which there is a key i + 1
  double first = 0;            ///< weight of key 0
  double punctuation = 0;      ///< weight of punctuation
  double same_word = 0;        ///< weight of keys with the query's token; in self-attention without key i
  std::map<std::string, double> special{};  ///< weight of each special token, by its name
  double end_from_end = 0;                  ///< weight of ends of sentences, for queries that are an end
  double end_rows = 0;                      ///< number of queries that are an end of a sentence
  double end_from_rest = 0;                 ///< weight of ends of sentences, for all other queries
  std::array<double, max_band + 1> band{};  ///< weight within |i - j| <= w, for each w
  /// Number of rows whose largest weight is at j - i = index - max_offset.
  std::array<double, 2 * max_offset + 1> at_offset{};
  double rarest = 0;           ///< number of rows whose largest weight is on the rarest word
  double two_rarest = 0;       ///< number of rows whose largest weight is on one of the two rarest words
  double rare_rows = 0;        ///< number of queries that see one word rarer than all others, without a tie
  double column = 0;           ///< per map: largest mean weight of a column
  double uniform_column = 0;   ///< per map: largest mean weight of a column with equal weights
  double uniform_special = 0;  ///< weight of special tokens with equal weights
  double uniform_punctuation = 0;                 ///< weight of punctuation with equal weights
  std::map<std::string, double> column_tokens{};  ///< number of maps whose column of `column` is this token
  double rank = 0;                                ///< effective rank of the maps for which it is computed
  double rank_maps = 0;                           ///< number of these maps

  void add(const HeadSums& other);  ///< adds every sum
};

/// The sums of one head of one map. `counts` tells how rare tokens are; a token that it lacks is the rarest.
HeadSums sums_of(const MapView& map, int64_t head, const TokenCounts& counts);

/// The effective rank of a matrix [rows, columns]: e to the entropy of its singular values, which are divided
/// by their sum. 1 when all rows point the same way, min(rows, columns) for a permutation; 0 for a matrix of
/// zeros. Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality".
double effective_rank(std::span<const float> matrix, int64_t rows, int64_t columns);
/// The effective rank of one head: of its map, pooled into 64 tiles where it is longer.
double rank_of_head(const MapView& map, int64_t head);

/// Scores of one head on a sequence that repeats itself after `period` tokens (Olsson et al. 2022).
struct RepeatScores {
  double induction = 0;  ///< mean weight on the token after the previous occurrence of the query's token
  double previous = 0;   ///< mean weight on the token before the query
};
/// Fails unless the map is square with more than `period` tokens.
RepeatScores repeat_scores(const MapView& map, int64_t head, int64_t period);

}  // namespace heed
