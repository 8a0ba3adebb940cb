// Progress of a run on standard error: one line that is rewritten on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/counted_work.h"

namespace heed {

/// Prints to standard error. On a terminal the last line is rewritten; elsewhere a line is printed now and
/// then. Where standard error cannot be written, it is quiet from then on, and the run continues.
class Progress {
 public:
  Progress();
  /// Prints a permanent line: "  label       text".
  void say(const std::string& label, const std::string& text);
  /// The present state of training.
  struct Now {
    int64_t step = 0;                ///< steps taken
    int64_t total = 0;               ///< steps of the run
    double loss = 0;                 ///< loss of the step, in nats
    double rate = 0;                 ///< learning rate
    double norm = -1;                ///< norm of the gradient; below 0: unknown
    int64_t validated = 0;           ///< step of the last validation
    double validation = -1;          ///< loss of the last validation; below 0: none yet
    double estimate = -1;            ///< loss on random batches of the last validation; below 0: none
    double accuracy = -1;            ///< accuracy of the last validation; below 0: none
    double bleu = -1;                ///< BLEU of the last validation; below 0: none
    double tokens_per_second = 0;    ///< target tokens a second; 0: unknown
    double examples_per_second = 0;  ///< rows a second, where they have no tokens; 0: unknown
    double seconds_left = 0;         ///< expected seconds until the run's end
    /// Records one score of the validation at `step_of_score`.
    void take_score(int64_t step_of_score, const std::string& name, double value);
  };
  /// Shows a step. Prints at most five times a second on a terminal; elsewhere after about each tenth of the
  /// run, and at least every 10 seconds.
  void step(const Now& now);
  void finish();  ///< ends the line of progress, if there is one: later steps are of another run
  /// Work beside the steps, such as scoring.
  struct Work {
    std::string label;  ///< label of the line
    double share = -1;  ///< fraction done, 0 to 1; below 0: unknown, then the time since `began` is shown
    double seconds_left = 0;  ///< expected seconds until its end; below 0: not known yet
    double began = 0;         ///< seconds_now() at its beginning; 0: just now
  };
  /// Shows the progress of work. Prints at most five times a second on a terminal, elsewhere every 10
  /// seconds.
  void work(const Work& now);
  /// Shows a line for each of several works that go on at once; each is shorter than columns(). Prints at
  /// most five times a second on a terminal, elsewhere every 10 seconds.
  void together(const std::vector<std::string>& lines);
  /// Columns that a line may take: those of the terminal; without one there is no limit.
  int64_t columns() const;
  void erase();        ///< erases the lines of progress, if there are any
  bool quiet = false;  ///< prints nothing

 private:
  void put(const std::string& words);
  void close_line();
  void rewrite(const std::string& line);
  bool terminal_ = false;
  bool open_ = false;         // whether the last line can be rewritten
  bool working_ = false;      // whether the last line is one of work()
  size_t num_together_ = 0;   // lines of together() that can be rewritten
  double printed_at_ = -1e9;  // seconds_now() of the last print
  int64_t printed_step_ = 0;  // last step printed where there is no terminal
};

/// While it lives, a Progress shows under this label what CountedWork (core/counted_work.h) counts in this
/// thread; its line is erased at the end.
class ProgressScope {
 public:
  /// The progress must outlive the scope.
  ProgressScope(Progress& progress, const std::string& label);
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;
  ~ProgressScope() { progress_.erase(); }

 private:
  Progress& progress_;
  WorkScope scope_;
};

/// The line of a step, with a bar or without, shorter than `columns`: the least important parts are left out
/// first (gradient norm, bar, estimate, speed), the step never.
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
