// ListOps: nested operators on lists of digits, with exact values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/baselines.h"
#include "heed/data/progress_callback.h"
#include "heed/data/text/labelled_sequences.h"

namespace heed {

/// The grammar of random expressions. Defaults are those of the Long Range Arena (Tay et al. 2021, arXiv
/// 2011.04006; lra_benchmarks/data/listops.py).
struct ListOpsGrammar {
  int64_t depth = 10;       ///< levels of nodes, root included: operators nest depth - 1 times
  int64_t arguments = 10;   ///< maximum arguments of an operator, at least 2
  double operators = 0.25;  ///< probability of an operator where one is possible
  int64_t shortest = 500;   ///< exclusive lower bound of the number of tokens
  int64_t longest = 2000;   ///< exclusive upper bound of the number of tokens
};

// Tokens of an expression, as bytes; 0 is padding.
inline constexpr uint8_t listops_min = 1;     ///< [MIN, with its opening bracket
inline constexpr uint8_t listops_max = 2;     ///< [MAX
inline constexpr uint8_t listops_median = 3;  ///< [MED
inline constexpr uint8_t listops_sum = 4;     ///< [SM: the sum modulo 10
inline constexpr uint8_t listops_close = 5;   ///< ]
inline constexpr uint8_t listops_digit = 6;   ///< the digit 0; 6 to 15 are the digits 0 to 9
/// Number of tokens, padding included.
inline constexpr int64_t listops_vocabulary = 16;

/// `count` distinct expressions with their values. Equal arguments give equal expressions, for any number of
/// threads; on_progress gets about the number of finished expressions. Fault::usage for an illegal grammar,
/// or one that has too few expressions.
Sequences listops(int64_t count, uint64_t seed, const ListOpsGrammar& grammar = {},
                  const ProgressCallback& on_progress = {});

/// The value of an expression. Only the top `max_levels` levels of operators are evaluated; deeper operators
/// are guessed: MIN as 0, MAX as 9, MED as 4, SM as 5. With all levels it is the label. Fault::data for a
/// malformed expression.
int64_t listops_value(std::string_view tokens, int64_t max_levels = 1000000);

/// Baselines: the most frequent answer; tables by root operator, and by root operator and its direct digits;
/// values with 1 to `max_levels` levels evaluated. Tables are fitted to `train_set`; all baselines are scored
/// on `test_set`.
std::vector<Baseline> listops_baselines(const Sequences& train_set, const Sequences& test_set,
                                        int64_t max_levels = 6);

/// The expression as text: "[MAX 2 9 [MIN 4 7 ] 0 ]".
std::string listops_text(std::string_view tokens);

/// A line of the benchmark's files, without line end: the expression as a binary tree in parentheses, a tab,
/// the label.
std::string listops_line(std::string_view tokens, int64_t label);

/// Reads a file of the benchmark: a header, then one expression a line; ignores parentheses; the closing
/// bracket is `]` or `X`. Fault::data that names the line of a malformed expression or wrong label.
Sequences read_listops(const Path& path);

/// Reads the benchmark's basic_train.tsv, basic_val.tsv and basic_test.tsv from a folder; Fault::file that
/// names missing ones.
std::array<Sequences, 3> read_listops_folder(const Path& folder);

/// Writes basic_train.tsv, basic_val.tsv and basic_test.tsv into a folder.
void write_listops(const Path& folder, const std::array<Sequences, 3>& splits);

}  // namespace heed
