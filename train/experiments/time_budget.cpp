// Reads durations, and measures budgets by the clock.
#include "heed/train/experiments/time_budget.h"

#include <string_view>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

constexpr int64_t max_count = 1'000'000;  // limit of the hours, minutes or seconds given

struct Unit {
  char letter;
  double seconds;
};
constexpr Unit units[] = {{'h', 3600}, {'m', 60}, {'s', 1}};

/// The seconds of a duration; below 0 for a text that is none.
double parsed_duration(std::string_view words) {
  double seconds = 0;
  size_t begin = 0;  // start of the number
  for (const Unit& unit : units) {
    int64_t count = 0;
    size_t end = begin;
    while (end < words.size() && is_ascii_digit(words[end]) && count <= max_count)
      count = 10 * count + (words[end++] - '0');
    if (end == begin || end == words.size() || words[end] != unit.letter) continue;
    if (count > max_count) return -1;
    seconds += static_cast<double>(count) * unit.seconds;
    begin = end + 1;
  }
  return begin == words.size() ? seconds : -1;
}

}  // namespace

double duration_seconds(const std::string& words, const std::string& option) {
  const double seconds = parsed_duration(words);
  if (seconds > 0) return seconds;
  fail(option, " = '", words,
       "' is no duration above 0. Write hours, minutes and seconds, each at most once ",
       "and in this order: 90s, 30m, 2h or 1h30m.");
}

TimeBudget::TimeBudget(double seconds) : end_(seconds_now() + seconds) {}

bool TimeBudget::spent() const { return seconds_now() >= end_; }

TimeBudget TimeBudget::part(double share) const { return TimeBudget(share * (end_ - seconds_now())); }

}  // namespace heed
