// Measures of a head over a corpus, sums over many maps: where it looks, how sharply, and on which tokens.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/attention/inspect/map_view.h"

namespace heed {

/// How often each token occurs in the examples, for heads that look at rare ones.
using TokenCounts = std::unordered_map<std::string, int64_t>;

/// True for marks such as `[SOS]` and `<|endoftext|>`.
bool is_special_token(std::string_view token);
/// True for a token of punctuation marks alone, past the mark of a word's beginning (U+2581).
bool is_punctuation_token(std::string_view token);

/// Sums over the rows of maps of one head; `row` means a query. mean_of() divides them.
struct HeadSums {
  static constexpr int64_t max_band = 10;    ///< widest band
  static constexpr int64_t max_offset = 10;  ///< farthest offset that is counted by itself

  double examples = 0;         ///< maps
  double rows = 0;             ///< queries of all maps
  double entropy = 0;          ///< -sum a log a, nats; weights below zero count as zero
  double uniform_entropy = 0;  ///< entropy of equal weights on all visible keys, nats
  double information = 0;      ///< over maps: entropy of the mean row less mean entropy, times rows
  double confidence = 0;       ///< largest weight, end-of-sentence column left out (Voita et al. 2019)
  double distance = 0;         ///< sum_j a_ij |i - j|
  double offset = 0;           ///< sum_j a_ij (j - i)
  double total = 0;            ///< sum_j a_ij: 1, or what the attention makes it
  double self = 0;             ///< weights of keys i
  double previous = 0;         ///< weights of keys i - 1
  double next = 0;             ///< weights of keys i + 1
  double self_rows = 0;        ///< queries i for which there is a key i
  double previous_rows = 0;    ///< queries for which there is a key i - 1
  double next_rows = 0;        ///< queries for which there is a key i + 1
  double first = 0;            ///< weight of key 0
  double punctuation = 0;      ///< on punctuation
  double same_word = 0;  ///< on other keys whose token is the query's; in cross-attention on any such key
  std::map<std::string, double> special{};  ///< on each special token, by its name
  double end_from_end = 0;                  ///< on the end of the sentence, of queries that are an end
  double end_rows = 0;                      ///< queries that are an end
  double end_from_rest = 0;                 ///< on the end of the sentence, of all other queries
  std::array<double, max_band + 1> band{};  ///< within |i - j| <= w
  std::array<double, 2 * max_offset + 1> at_offset{};  ///< rows whose largest weight is at j - i = index - 10
  double rarest = 0;                                   ///< rows whose largest weight is on the rarest word
  double two_rarest = 0;  ///< rows whose largest weight is on one of the two rarest words
  double rare_rows = 0;   ///< queries that see words of which one is rarer than all others, without a tie
  double column = 0;      ///< over maps: largest mean weight of a column
  double uniform_column =
      0;  ///< over maps: largest mean weight of a column, for equal weights on all visible keys
  double uniform_special = 0;                     ///< on special tokens, for equal weights
  double uniform_punctuation = 0;                 ///< on punctuation, for equal weights
  std::map<std::string, double> column_tokens{};  ///< maps in which that column is this token
  double rank = 0;                                ///< over some maps: effective rank
  double rank_maps = 0;                           ///< those maps

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
