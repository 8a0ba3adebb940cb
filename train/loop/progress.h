// What a run says while it works: one living line on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// Prints to standard error. On a terminal the last line is rewritten; elsewhere a line is printed now and
/// then. What cannot be written makes it quiet from then on: a run goes on though nobody reads of it.
class Progress {
 public:
  Progress();
  /// A line that stays: "  label       text".
  void say(const std::string& label, const std::string& text);
  /// The present state of training.
  struct Now {
    int64_t step = 0;              ///< steps taken
    int64_t total = 0;             ///< steps of the run
    double loss = 0;               ///< of the step, in nats
    double rate = 0;               ///< learning rate
    double norm = -1;              ///< norm of the gradient; below 0: unknown
    int64_t validated = 0;         ///< the step of the last validation, whose scores follow
    double validation = -1;        ///< its loss; below 0: none yet
    double estimate = -1;          ///< the same by random batches; below 0: none
    double accuracy = -1;          ///< below 0: none
    double bleu = -1;              ///< below 0: none
    double tokens_per_second = 0;  ///< target tokens a second; 0: unknown
    double seconds_left = 0;       ///< expected until the run's end
    /// Takes one score of the validation at a step.
    void take_score(int64_t at, const std::string& name, double value);
  };
  /// Called each step, or now and then; prints at most five times a second on a terminal, else once a step,
  /// at about every tenth of the run or 10 seconds.
  void step(const Now& now);
  void finish();  ///< ends the living line, if there is one: what steps come next are another run's
  /// Work beside the steps, such as scoring.
  struct Work {
    std::string label;        ///< as in say()
    double share = -1;        ///< done, 0 to 1; below 0: unknown, then the time since `began` is shown
    double seconds_left = 0;  ///< expected until its end; below 0: not known yet
    double began = 0;         ///< when it began, as seconds_now(); 0: just now
  };
  /// Called now and then; prints at most five times a second on a terminal, else every 10 seconds.
  void work(const Work& now);
  void erase();        ///< takes the living line away, if there is one
  bool quiet = false;  ///< prints nothing

 private:
  void put(const std::string& words);
  void close_line();
  void rewrite(const std::string& line);
  bool terminal_ = false;
  bool open_ = false, working_ = false;  // the living line, and whether it is one of work()
  double printed_at_ = -1e9;
  int64_t printed_step_ = 0;
};

/// The line of a step, with a bar or without: shorter than `columns`, for which the parts that say least are
/// left out first (gradient norm, bar, estimate, speed) and the step never.
std::string progress_line(const Progress::Now& now, bool bar, int64_t columns);

/// The line of work beside the steps, with a bar or without, shorter than `columns`.
std::string work_line(const Progress::Work& now, bool bar, int64_t columns);

/// Seconds since some fixed moment.
double seconds_now();
/// "3:07", "1:02:09".
std::string clock_text(double seconds);
/// "8.9k", "1.2M".
std::string short_number(double value);

}  // namespace heed
