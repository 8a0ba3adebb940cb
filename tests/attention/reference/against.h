// Compares a variant on given heads with a formula in plain loops: values, map and all gradients.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/attention/variant.h"
#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Sizes and mask of one call.
struct Example {
  int64_t B = 1, H = 1, N = 1, M = 1, d = 1, dv = 1;
  bool causal = false, cross = false;
  std::vector<int32_t> lengths = {};  ///< number of keys of each sequence; empty: no padding

  int64_t keys_of(int64_t b) const { return lengths.empty() ? M : lengths[static_cast<size_t>(b)]; }
};

/// "q", "k", "v", and parameters and random draws by name: values in row-major order.
using Values = std::map<std::string, std::vector<double>>;

/// The matrix of one head in values [B or 1, H or 1, rows, columns].
Matrix head_of(const std::vector<double>& values, int64_t head, int64_t rows, int64_t columns);

/// The map [N, M] of head h of sequence b; rows of padded queries are ignored.
using MapFormula = std::function<Matrix(const Example& e, const Values& values, int64_t b, int64_t h)>;

/// Puts a tensor into a module by name, even one that is otherwise drawn anew.
void put_in(Module& module, const std::string& name, const Tensor& tensor);

/// Fails a check when the variant's output, map or gradients differ from map v and its central differences.
/// `trained` are the parameters with gradients, `fixed` the random draws that the formula uses. `put` is put
/// into the module first.
void against(const std::string& spec, const Example& example, const MapFormula& formula,
             const std::vector<std::string>& trained = {}, const std::vector<std::string>& fixed = {},
             double tolerance = 1e-9, const std::map<std::string, Tensor>& put = {});

/// Examples with odd lengths, lengths 1 and 2, width 1, other value widths, padding, causal and cross if
/// supported.
std::vector<Example> usual_examples(bool causal, bool cross, bool padding = true);

}  // namespace heed::reference
