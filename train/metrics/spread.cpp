// Means over seeds and their differences.
#include "heed/train/metrics/spread.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heed/core/io/number_text.h"

namespace heed {
namespace {

/// The probability that a variable of Student's distribution is within -t to t: the finite sums for odd and
/// even degrees of Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_probability(double t, int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double square = std::cos(angle) * std::cos(angle);
  const bool is_odd = degrees % 2 == 1;
  double term = is_odd ? std::cos(angle) : 1, sum = degrees == 1 ? 0 : term;
  for (int64_t i = is_odd ? 3 : 2; i <= degrees - 2; i += 2) {
    term *= square * static_cast<double>(i - 1) / static_cast<double>(i);
    sum += term;
  }
  return is_odd ? (angle + std::sin(angle) * sum) * 2 / std::numbers::pi : std::sin(angle) * sum;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return {.mean = NAN};
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

std::string to_string(const Spread& spread) {
  if (spread.count == 0) return "";
  if (spread.count == 1 || !(spread.deviation > 0)) return formatted("%.4g", spread.mean);
  // The deviation has two digits, and the mean as many decimals.
  const int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(spread.deviation))), 0, 9);
  return formatted("%.*f", decimals, spread.mean) + " \u00b1 " +
         formatted("%.*f", decimals, spread.deviation);
}

double student_bound(int64_t degrees) {
  constexpr double probability = 0.95;
  constexpr int64_t many = 10000;  // from here on the bound is that of the normal distribution to four digits
  double low = 0, high = 20;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_probability(middle, std::min(degrees, many)) < probability ? low : high) = middle;
  }
  return high;
}

std::optional<DifferenceInterval> difference_of(const Spread& a, const Spread& b) {
  if (a.count < 2 || b.count < 2) return {};
  const auto variance_of_mean = [](const Spread& x) {
    return x.deviation * x.deviation / static_cast<double>(x.count);
  };
  const double va = variance_of_mean(a), vb = variance_of_mean(b), sum = va + vb;
  DifferenceInterval out{.difference = a.mean - b.mean};
  if (!(sum > 0)) return out;
  const double degrees =
      sum * sum / (va * va / static_cast<double>(a.count - 1) + vb * vb / static_cast<double>(b.count - 1));
  out.reach = student_bound(std::max<int64_t>(1, static_cast<int64_t>(degrees))) * std::sqrt(sum);
  return out;
}

}  // namespace heed
