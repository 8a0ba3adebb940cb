// A budget of wall-clock time: 90s, 30m, 2h or 1h30m.
#pragma once

#include <cmath>
#include <string>

namespace heed {

/// The seconds of a duration such as 90s, 30m, 2h or 1h30m: hours, minutes and seconds in this order, each
/// at most once. A usage error that names `option` and the legal forms for any other text and for no time.
double duration_seconds(const std::string& words, const std::string& option);

/// A budget of wall-clock time that begins when it is made. The default is unlimited.
class TimeBudget {
 public:
  TimeBudget() = default;
  explicit TimeBudget(double seconds);  ///< ends `seconds` from now
  bool spent() const;                   ///< whether the time has passed
  TimeBudget part(double share) const;  ///< a budget of this share of the time that is left

 private:
  double end_ = INFINITY;  // on the clock of seconds_now()
};

}  // namespace heed
