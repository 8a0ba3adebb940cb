// A budget of wall-clock time: 90s, 30m, 2h or 1h30m.
#pragma once

#include <cmath>
#include <string>

namespace heed {

/// The seconds that a text such as 90s, 30m, 2h or 1h30m says: hours, minutes and seconds in this order, each
/// at most once. A usage error that names `option` and the legal forms for any other text and for no time.
double duration_seconds(const std::string& words, const std::string& option);

/// Counts wall-clock time from its making. The default has no end.
class TimeBudget {
 public:
  TimeBudget() = default;
  explicit TimeBudget(double seconds);  ///< `seconds` from now
  bool spent() const;                   ///< whether the time is over
  TimeBudget part(double share) const;  ///< a budget of this share of the time that is left

 private:
  double end_ = INFINITY;  // by seconds_now()
};

}  // namespace heed
