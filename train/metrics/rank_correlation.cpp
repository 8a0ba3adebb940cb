// Ranks values and correlates the ranks.
#include "heed/train/metrics/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/core/error.h"

namespace heed {
namespace {

/// The rank of each value, from 0, minus the mean of all ranks. Equal values share the mean of theirs.
std::vector<double> centred_ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t i, size_t j) { return values[i] < values[j]; });
  const double mean = (static_cast<double>(values.size()) - 1) / 2;
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = (static_cast<double>(begin) + static_cast<double>(end - 1)) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = shared - mean;
  }
  return ranks;
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size())
    fail("rank_correlation: ", a.size(), " and ", b.size(), " values. Give lists of one length.");
  const std::vector<double> x = centred_ranks(a), y = centred_ranks(b);
  const auto product = [](const std::vector<double>& p, const std::vector<double>& q) {
    return std::inner_product(p.begin(), p.end(), q.begin(), 0.0);
  };
  const double scale = std::sqrt(product(x, x) * product(y, y));
  return scale > 0 ? product(x, y) / scale : 0;
}

}  // namespace heed
