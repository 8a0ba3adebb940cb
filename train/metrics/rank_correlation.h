// Spearman's rank correlation.
#pragma once

#include <vector>

namespace heed {

/// The correlation of the ranks of two lists of one length, -1 to 1, where equal values share the mean of
/// their ranks (Spearman 1904). 0 where all values of a list are equal. Fails for lists of different lengths.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace heed
