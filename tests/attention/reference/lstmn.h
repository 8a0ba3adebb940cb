// LSTMN in plain double loops. Cheng et al. 2016, equations 5 to 10.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

struct LstmnShape {
  int64_t width = 1, heads = 1, hidden = 1, slots = 0;
};

/// Parameters by name, row-major; missing ones are left out of the formula.
using LstmnParameters = std::map<std::string, std::vector<double>>;

struct LstmnRun {
  Matrix h, c;               ///< [T, width]
  std::vector<Matrix> maps;  ///< [T, T] per head
};

namespace detail {

/// W x + b
inline std::vector<double> affine(const LstmnParameters& p, const std::string& name,
                                  const std::vector<double>& x) {
  const std::vector<double>& weight = p.at(name + ".weight");
  std::vector<double> y(weight.size() / x.size());
  const auto bias = p.find(name + ".bias");
  for (size_t r = 0; r < y.size(); ++r) {
    y[r] = bias == p.end() ? 0 : bias->second[r];
    for (size_t c = 0; c < x.size(); ++c) y[r] += weight[r * x.size() + c] * x[c];
  }
  return y;
}

inline std::vector<double> row(const Matrix& x, int64_t r) {
  return {x.values.begin() + r * x.columns, x.values.begin() + (r + 1) * x.columns};
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace detail

/// Runs one sequence x [T, width].
inline LstmnRun lstmn(const LstmnShape& s, const LstmnParameters& p, const Matrix& x) {
  const int64_t T = x.rows, W = s.width, d = W / s.heads;
  LstmnRun run{Matrix(T, W), Matrix(T, W), std::vector<Matrix>(static_cast<size_t>(s.heads), Matrix(T, T))};
  std::vector<double> read(static_cast<size_t>(W)), cell(static_cast<size_t>(W));
  for (int64_t t = 0; t < T; ++t) {
    const int64_t first = s.slots > 0 ? std::max<int64_t>(0, t - s.slots) : 0;
    const std::vector<double> from_input = detail::affine(p, "from_input", detail::row(x, t));
    const std::vector<double> from_summary = p.contains("from_summary.weight")
                                                 ? detail::affine(p, "from_summary", read)
                                                 : std::vector<double>(from_input.size());
    std::fill(read.begin(), read.end(), 0);
    std::fill(cell.begin(), cell.end(), 0);
    for (int64_t head = 0; head < s.heads; ++head) {
      Matrix& map = run.maps[static_cast<size_t>(head)];
      double total = 0;
      for (int64_t i = first; i < t; ++i) {
        const std::vector<double> from_slot = detail::affine(p, "from_slot", detail::row(run.h, i));
        double score = 0;
        for (int64_t a = 0; a < s.hidden; ++a) {
          const auto at = static_cast<size_t>(head * s.hidden + a);
          score += p.at("units")[at] * std::tanh(from_slot[at] + from_input[at] + from_summary[at]);
        }
        total += map.at(t, i) = std::exp(score);
      }
      for (int64_t i = first; i < t; ++i) {
        map.at(t, i) /= total;
        for (int64_t column = head * d; column < (head + 1) * d; ++column) {
          read[static_cast<size_t>(column)] += map.at(t, i) * run.h.at(i, column);
          cell[static_cast<size_t>(column)] += map.at(t, i) * run.c.at(i, column);
        }
      }
    }
    const std::vector<double> a = detail::affine(p, "cell.input", detail::row(x, t)),
                              b = detail::affine(p, "cell.inner", read);
    for (int64_t column = 0; column < W; ++column) {
      const auto gate = [&](int64_t which) {
        const auto at = static_cast<size_t>(which * W + column);
        return a[at] + b[at];
      };
      run.c.at(t, column) = detail::sigmoid(gate(1)) * cell[static_cast<size_t>(column)] +
                            detail::sigmoid(gate(0)) * std::tanh(gate(2));
      run.h.at(t, column) = detail::sigmoid(gate(3)) * std::tanh(run.c.at(t, column));
    }
  }
  return run;
}

}  // namespace heed::reference
