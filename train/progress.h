// What a run says while it works: one living line on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Prints to standard error. On a terminal the last line is rewritten; elsewhere a line is printed now and
/// then.
class Progress {
 public:
  Progress();
  /// A line that stays: "  label       text".
  void say(const std::string& label, const std::string& text);
  /// The present state of training.
  struct Now {
    int64_t step = 0, total = 0;
    double loss = 0, rate = 0, norm = 0;
    double validation = -1;  ///< last validation's first score; below 0: none yet
    double estimate = -1;    ///< the same by random batches; below 0: none
    double bleu = -1;        ///< below 0: none
    double tokens_per_second = 0, seconds_left = 0;
  };
  /// Called each step; prints at most five times a second on a terminal, else about every tenth of the run or
  /// 10 seconds.
  void step(const Now& now);
  void finish_line();  ///< ends the living line, if there is one
  bool quiet = false;

 private:
  std::string line(const Now& now) const;
  bool terminal_ = false;
  bool open_ = false;
  double printed_at_ = -1e9;
};

/// Seconds since some fixed moment.
double seconds_now();
/// "3:07", "1:02:09".
std::string clock_text(double seconds);
/// "8.9k", "1.2M".
std::string short_number(double value);

}  // namespace heed
