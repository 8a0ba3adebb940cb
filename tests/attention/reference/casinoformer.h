// Casinoformer in plain double loops: a tree that splits at its largest mass, and attention over its buds
// with all gradients. Queries share nothing.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "heed/tests/attention/reference/formulas.h"

namespace heed::reference {

/// Positions begin <= j < end of a bud; its node covers `size` positions, existing or not.
struct Bud {
  int64_t begin, end, size;
};

/// The mass of positions begin <= j < end for query i, summed over heads.
using BudMass = std::function<double(int64_t begin, int64_t end)>;

/// Splits the bud of largest mass, in ties the earliest, until there are ceil(leaves^exponent) buds.
inline std::vector<Bud> grow_buds(int64_t leaves, double exponent, const BudMass& mass) {
  if (leaves == 0) return {};
  const auto wanted = static_cast<size_t>(std::ceil(std::pow(static_cast<double>(leaves), exponent) - 1e-9));
  int64_t root = 1;
  while (root < leaves) root *= 2;
  std::vector<Bud> buds{{0, leaves, root}};
  while (buds.size() < std::min(wanted, static_cast<size_t>(leaves))) {
    size_t best = 0;
    double maximum = -1;
    for (size_t n = 0; n < buds.size(); ++n) {
      const double own = buds[n].end - buds[n].begin > 1 ? mass(buds[n].begin, buds[n].end) : -1;
      if (own > maximum) {
        maximum = own;
        best = n;
      }
    }
    const Bud bud = buds[best];
    const int64_t half = bud.size / 2, middle = bud.begin + half;
    buds[best] = {bud.begin, std::min(middle, bud.end), half};
    if (middle < bud.end) buds.insert(buds.begin() + static_cast<int64_t>(best) + 1, {middle, bud.end, half});
  }
  return buds;
}

/// Result of one head, and the gradients of sum(slope * out).
struct BudAttention {
  Matrix map, out, dq, dk, dv;
};

/// Attention of one head; buds: of each query.
inline BudAttention attend_buds(const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& slope,
                                const std::vector<std::vector<Bud>>& buds, double scale, bool counted) {
  BudAttention r{Matrix(q.rows, k.rows), Matrix(q.rows, v.columns), Matrix(q.rows, q.columns),
                 Matrix(k.rows, k.columns), Matrix(v.rows, v.columns)};
  for (int64_t i = 0; i < q.rows; ++i) {
    const std::vector<Bud>& own = buds[static_cast<size_t>(i)];
    std::vector<double> weight, counts, gain;
    double total = 0;
    for (const Bud& bud : own) {
      double score = 0, along = 0;
      for (int64_t j = bud.begin; j < bud.end; ++j) {
        score += dot(q, i, k, j) * scale / static_cast<double>(bud.end - bud.begin);
        along += dot(slope, i, v, j);
      }
      weight.push_back(std::exp(score));
      counts.push_back(counted ? static_cast<double>(bud.end - bud.begin) : 1);
      gain.push_back(along);
      total += weight.back() * counts.back();
    }
    double mean = 0;
    for (size_t n = 0; n < own.size(); ++n) mean += (weight[n] /= total) * gain[n];
    for (size_t n = 0; n < own.size(); ++n) {
      const double dscore =
          weight[n] * (gain[n] - counts[n] * mean) * scale / static_cast<double>(own[n].end - own[n].begin);
      for (int64_t j = own[n].begin; j < own[n].end; ++j) {
        r.map.at(i, j) = weight[n];
        for (int64_t c = 0; c < v.columns; ++c) {
          r.out.at(i, c) += weight[n] * v.at(j, c);
          r.dv.at(j, c) += weight[n] * slope.at(i, c);
        }
        for (int64_t c = 0; c < q.columns; ++c) {
          r.dq.at(i, c) += dscore * k.at(j, c);
          r.dk.at(j, c) += dscore * q.at(i, c);
        }
      }
    }
  }
  return r;
}

/// phi of one row for a value of the option `mass`. projection [d, d].
inline std::vector<double> bud_features(const std::string& mass, const Matrix& x, int64_t row,
                                        const Matrix& projection) {
  const int64_t d = x.columns;
  std::vector<double> out(static_cast<size_t>(2 * d));
  if (mass == "posalign") {
    for (int64_t c = 0; c < d; ++c) {
      out[static_cast<size_t>(c)] = std::max(x.at(row, c), 0.0);
      out[static_cast<size_t>(d + c)] = std::max(-x.at(row, c), 0.0);
    }
    return out;
  }
  const double down = std::pow(static_cast<double>(d), -0.25);
  double square = 0;
  for (int64_t c = 0; c < d; ++c) square += x.at(row, c) * down * x.at(row, c) * down;
  for (int64_t r = 0; r < d; ++r) {
    double a = 0;
    for (int64_t c = 0; c < d; ++c) a += projection.at(r, c) * x.at(row, c) * down;
    double& first = out[static_cast<size_t>(r)];
    double& second = out[static_cast<size_t>(d + r)];
    if (mass == "favor_relu") {
      first = std::max(a, 0.0) / std::sqrt(2.0 * static_cast<double>(d));
      second = std::max(-a, 0.0) / std::sqrt(2.0 * static_cast<double>(d));
    } else if (mass == "favor") {
      first = std::exp(a - square / 2) / std::sqrt(2.0 * static_cast<double>(d));
      second = std::exp(-a - square / 2) / std::sqrt(2.0 * static_cast<double>(d));
    } else {
      const double up = std::exp(std::min(square, 100.0) / 2) / std::sqrt(static_cast<double>(d));
      first = up * std::sin(a);
      second = up * std::cos(a);
    }
  }
  return out;
}

/// Mean of scale q . k over the positions begin <= j < end, and its variance without products of columns.
inline std::pair<double, double> score_moments(const Matrix& q, int64_t i, const Matrix& k, int64_t begin,
                                               int64_t end, double scale) {
  const auto count = static_cast<double>(end - begin);
  double mean = 0, variance = 0;
  for (int64_t c = 0; c < q.columns; ++c) {
    double sum = 0, squares = 0;
    for (int64_t j = begin; j < end; ++j) {
      sum += k.at(j, c);
      squares += k.at(j, c) * k.at(j, c);
    }
    mean += q.at(i, c) * sum / count;
    variance += q.at(i, c) * q.at(i, c) * (squares / count - sum * sum / (count * count));
  }
  return {scale * mean, scale * scale * variance};
}

/// The share of one head in the mass of a bud by `lookahead`, `contrast`, `gap` or `variance`.
inline double moment_mass(const std::string& mass, const Matrix& q, int64_t i, const Matrix& k,
                          int64_t leaves, int64_t begin, int64_t end, double scale) {
  const bool ahead = mass == "lookahead" || mass == "contrast";
  const auto weight = [&](int64_t from, int64_t to, bool with_variance) {
    const auto [mean, variance] = score_moments(q, i, k, from, to, scale);
    return static_cast<double>(to - from) * std::exp(mean + (with_variance ? variance / 2 : 0));
  };
  int64_t size = 1;  // leaves of a node; at most 16 such nodes are summed to the total
  while (16 * size < leaves) size *= 2;
  double total = 0;
  for (int64_t at = 0; at < leaves; at += size) total += weight(at, std::min(at + size, leaves), !ahead);
  if (mass == "gap") return (weight(begin, end, true) - weight(begin, end, false)) / total;
  if (mass == "variance") {
    const auto [mean, variance] = score_moments(q, i, k, begin, end, scale);
    return static_cast<double>(end - begin) * std::exp(2 * mean + variance) * (std::exp(variance) - 1) /
           (total * total);
  }
  int64_t half = 1;
  while (2 * half < end - begin) half *= 2;
  if (mass == "contrast") {
    const auto left = static_cast<double>(half), right = static_cast<double>(end - begin - half);
    const double apart =
        (weight(begin, begin + half, false) / left - weight(begin + half, end, false) / right) / total;
    return left * right / (left + right) * apart * apart;
  }
  return (weight(begin, begin + half, false) + weight(begin + half, end, false) - weight(begin, end, false)) /
         total;
}

}  // namespace heed::reference
