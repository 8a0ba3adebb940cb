// Mean and deviation of a score over seeds, and whether two means differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Mean and sample standard deviation of some values.
struct Spread {
  double mean = 0;       ///< sum divided by count
  double deviation = 0;  ///< sample standard deviation; 0 for one value
  int64_t count = 0;     ///< number of values
};
/// The spread of some values.
Spread spread_of(const std::vector<double>& values);
/// "0.913 ± 0.004", or only the mean for one value.
std::string to_string(const Spread& spread);

/// An interval that holds a difference of two means with a probability of 95 %.
struct DifferenceInterval {
  double difference = 0;  ///< mean of the first less that of the second
  double reach = 0;       ///< the interval is difference - reach to difference + reach
  /// True if the interval is on one side of 0.
  bool is_clear() const { return difference > reach || difference < -reach; }
};
/// Welch's interval for a.mean - b.mean, whose samples may have different deviations (Welch 1947); the
/// degrees of freedom are rounded down. Empty unless both have two values or more.
std::optional<DifferenceInterval> difference_of(const Spread& a, const Spread& b);

/// t for which a variable of Student's distribution is within -t to t with a probability of 95 %: 12.706 for
/// one degree of freedom, 1.960 for many. `degrees` is at least 1.
double student_bound(int64_t degrees);

}  // namespace heed
