// ListOps: nested operators over lists of digits, with an exact answer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/anchors.h"
#include "data/sequences.h"
#include "data/told.h"

namespace heed {

/// The grammar of the Long Range Arena (Tay et al. 2021, arXiv 2011.04006; lra_benchmarks/data/listops.py),
/// by default with its numbers.
struct ListOpsGrammar {
  int64_t depth = 10;                      ///< of nodes, the root included: operators nest depth - 1 times
  int64_t arguments = 10;                  ///< of an operator at most; at least 2
  double operators = 0.25;                 ///< share of operators among nodes that may be one
  int64_t shortest = 500, longest = 2000;  ///< a sequence has more and fewer tokens than these
};

/// Tokens of an expression, as bytes: MIN 1, MAX 2, MED 3, SM 4, the closing bracket 5, digits 6 to 15; 0 is
/// padding.
inline constexpr uint8_t listops_min = 1, listops_max = 2, listops_median = 3, listops_sum = 4,
                         listops_close = 5, listops_digit = 6;
inline constexpr int64_t listops_vocabulary = 16;

/// `count` different expressions with their values. The same arguments give the same ones, for any number of
/// threads; `told` hears about how many there are. Usage error when the grammar is none, or has not that many
/// expressions.
Sequences listops(int64_t count, uint64_t seed, const ListOpsGrammar& grammar = {}, const Told& told = {});

/// The value of an expression whose first `levels` levels of operators are computed and whose deeper ones are
/// guessed by their operator: MIN as 0, MAX as 9, MED as 4, SM as 5. All levels: the label. Fault::data when
/// it is no expression.
int64_t listops_value(std::string_view tokens, int64_t levels = 1000000);

/// What little knowledge scores: the commonest answer, the operator at the root, that and the digits directly
/// under it, then 1 to `levels` levels computed. Tables are counted on `known`, scores on `asked`.
std::vector<Anchor> listops_anchors(const Sequences& known, const Sequences& asked, int64_t levels = 6);

/// The text of the tokens: "[MAX 2 9 [MIN 4 7 ] 0 ]".
std::string listops_text(std::string_view tokens);

/// A line of the benchmark's files without its end: the expression as a binary tree with parentheses, a tab,
/// and the label.
std::string listops_line(std::string_view tokens, int64_t label);

/// A file of the benchmark: a head, then one line an expression; parentheses do not matter, and the closing
/// bracket is `]` or `X`. Fault::data naming the line where it is no expression or the label is not its
/// value.
Sequences read_listops(const Path& path);

/// The benchmark's basic_train.tsv, basic_val.tsv and basic_test.tsv out of a folder; Fault::file naming them
/// where it does not hold them.
std::array<Sequences, 3> read_listops_folder(const Path& folder);

/// Writes basic_train.tsv, basic_val.tsv and basic_test.tsv into a folder.
void write_listops(const Path& folder, const std::array<Sequences, 3>& splits);

}  // namespace heed
