// A variant on heads that are given, against a formula in plain loops: values, map and every gradient.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attention/variant.h"
#include "tests/attention/reference/formulas.h"

namespace heed::reference {

/// Example of one call, and who may look at whom.
struct Example {
  int64_t B = 1, H = 1, N = 1, M = 1, d = 1, dv = 1;
  bool causal = false, cross = false;
  std::vector<int32_t> lengths = {};  ///< of the keys of each sequence; empty: all count

  int64_t keys_of(int64_t b) const { return lengths.empty() ? M : lengths[static_cast<size_t>(b)]; }
};

/// "q", "k", "v", and parameters and draws by their names: all numbers in row-major order.
using Values = std::map<std::string, std::vector<double>>;

/// One head of [B or 1, H or 1, rows, columns] numbers.
Matrix head_of(const std::vector<double>& values, int64_t head, int64_t rows, int64_t columns);

/// The map [N, M] of head h of sequence b; rows of padded queries are not looked at.
using MapFormula = std::function<Matrix(const Example& e, const Values& values, int64_t b, int64_t h)>;

/// Puts a tensor into a module under its name, also where there is none yet: a draw that is otherwise made
/// anew.
void put_in(Module& module, const std::string& name, const Tensor& tensor);

/// Fails a check where the variant's output, map or gradients differ from map v and its central differences.
/// `trained` are the parameters that get a gradient, `fixed` the draws that the formula reads. `put` goes
/// into the module first.
void against(const std::string& spec, const Example& example, const MapFormula& formula,
             const std::vector<std::string>& trained = {}, const std::vector<std::string>& fixed = {},
             double tolerance = 1e-9, const std::map<std::string, Tensor>& put = {});

/// Odd lengths, lengths of 1 and 2, width 1, other widths of values, padding, causal and cross where they are
/// defined.
std::vector<Example> usual_examples(bool causal, bool cross, bool padding = true);

}  // namespace heed::reference
