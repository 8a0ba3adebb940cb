// Progress lines of training on the terminal.
#include "heed/train/progress/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/rewritten_lines.h"
#include "heed/core/io/terminal.h"

namespace heed {
namespace {

constexpr double seconds_between_lines = 10;      // where there is no terminal
constexpr double seconds_between_rewrites = 0.2;  // on a terminal
constexpr int64_t bar_width = 18;                 // columns

/// The label in columns 3 to 14: "  label       ".
std::string labelled(const std::string& label) {
  return "  " + label + std::string(label.size() < 11 ? 12 - label.size() : 1, ' ');
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string clock_text(double seconds) {
  constexpr double max_seconds = 1e12;  // also stands for infinity and NaN
  const auto s = static_cast<int64_t>((seconds < max_seconds ? std::max(seconds, 0.0) : max_seconds) + 0.5);
  const auto minutes = static_cast<long long>(s / 60), rest = static_cast<long long>(s % 60);
  if (s < 3600) return formatted("%lld:%02lld", minutes, rest);
  return formatted("%lld:%02lld:%02lld", minutes / 60, minutes % 60, rest);
}

std::string short_number(double value) {
  if (value >= 1e6) return formatted("%.2fM", value / 1e6);
  return value >= 1e3 ? formatted("%.1fk", value / 1e3) : formatted("%.0f", value);
}

void Progress::Now::take_score(int64_t step_of_score, const std::string& name, double value) {
  validated = step_of_score;
  if (name == "loss") validation = value;
  if (name == "estimate") estimate = value;
  if (name == "accuracy") accuracy = value;
  if (name == "bleu") bleu = value;
}

Progress::Progress() {
  const char* kind = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && !(kind != nullptr && std::strcmp(kind, "dumb") == 0);
}

void Progress::put(const std::string& words) { quiet = !io::print_error(words); }

void Progress::close_line() {
  if (working_ || num_together_ > 0) return erase();  // unfinished work leaves no line
  if (open_ && !quiet) put("\n");
  open_ = false;
}

void Progress::finish() {
  close_line();
  printed_step_ = 0;
}

void Progress::rewrite(const std::string& line) { quiet = !io::rewrite_error_line(line); }

void Progress::erase() {
  if (num_together_ > 0 && !quiet) quiet = !io::rewrite_error_lines({}, num_together_);
  if (open_ && !quiet) rewrite("");
  open_ = working_ = false;
  num_together_ = 0;
}

void Progress::say(const std::string& label, const std::string& text) {
  if (quiet) return;
  close_line();
  put(labelled(label) + text + "\n");
}

namespace {

std::string bar_of(size_t filled, size_t width) {
  return "[" + std::string(filled, '#') + std::string(width - filled, '.') + "]";
}

/// The maximum size of a line that can be overwritten: a terminal wraps a line that fills it.
size_t max_line_size(int64_t columns) { return static_cast<size_t>(std::max<int64_t>(columns, 1)) - 1; }

}  // namespace

std::string progress_line(const Progress::Now& now, bool bar, int64_t columns) {
  const auto share_of = [&](int64_t units) {  // units * the fraction of steps taken
    const int64_t done = std::clamp<int64_t>(now.step, 0, now.total);
    return now.total > 0 ? static_cast<size_t>(units * done / now.total) : 0;
  };
  const std::string total = std::to_string(now.total);
  struct Part {
    int rank;  // parts of higher rank are dropped first when the line is too long
    std::string words;
  };
  std::vector<Part> parts{
      {0,
       formatted("  step %*lld/", static_cast<int>(total.size()), static_cast<long long>(now.step)) + total}};
  const auto add = [&](bool is_known, int rank, std::string words) {
    if (is_known) parts.push_back({rank, std::move(words)});
  };
  add(bar, 9, " " + bar_of(share_of(bar_width), bar_width));
  add(true, 6, formatted(" %3zu%%", share_of(100)));
  add(true, 1, formatted("  train %.3f", now.loss));
  add(now.validation >= 0, 3, formatted("  valid %.3f", now.validation));
  add(now.estimate >= 0, 8, formatted(" (estimate %.3f)", now.estimate));
  add(now.accuracy >= 0, 4, formatted("  accuracy %.3f", now.accuracy));
  add(now.bleu >= 0, 4, formatted("  bleu %4.1f", now.bleu));
  add(now.validation >= 0 && now.validated != now.step, 5, " @" + std::to_string(now.validated));
  add(now.tokens_per_second > 0, 7, "  " + short_number(now.tokens_per_second) + " tok/s");
  add(now.examples_per_second > 0, 7, "  " + short_number(now.examples_per_second) + " examples/s");
  add(now.norm >= 0, 10, formatted("  grad %.2f", now.norm));
  add(true, 2, "  eta " + clock_text(now.seconds_left));
  const auto joined = [&] {
    std::string out;
    for (const Part& part : parts) out += part.words;
    return out;
  };
  const size_t max_size = max_line_size(columns);
  while (parts.size() > 1 && joined().size() > max_size)
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const Part& a, const Part& b) { return a.rank < b.rank; }));
  return joined().substr(0, max_size);  // every character is one byte and one column
}

std::string work_line(const Progress::Work& now, bool bar, int64_t columns) {
  std::string out = labelled(now.label);
  if (now.share < 0) {
    out += now.began > 0 ? "... " + clock_text(seconds_now() - now.began) : "...";
  } else {
    const double share = std::clamp(now.share, 0.0, 1.0);
    out += (bar ? bar_of(static_cast<size_t>(bar_width * share), bar_width) + " " : "") +
           formatted("%3d%%", static_cast<int>(100 * share));
    if (share > 0 && now.seconds_left >= 0) out += "  eta " + clock_text(now.seconds_left);
  }
  return out.substr(0, max_line_size(columns));
}

void Progress::work(const Work& now) {
  if (quiet) return;
  const double time = seconds_now();
  if (terminal_) {
    if (open_ && time - printed_at_ < seconds_between_rewrites) return;
    rewrite(work_line(now, true, columns()));
    open_ = working_ = true;
  } else {
    if (now.began <= 0 || time - std::max(printed_at_, now.began) < seconds_between_lines) return;
    put(work_line(now, false, columns()) + "\n");
  }
  printed_at_ = time;
}

void Progress::step(const Now& now) {
  if (quiet) return;
  const double time = seconds_now();
  const bool last = now.step == now.total;
  if (terminal_) {
    if (!last && time - printed_at_ < seconds_between_rewrites) return;
    rewrite(progress_line(now, true, columns()));  // asked each time: windows are resized
    open_ = true;
    working_ = false;
  } else {
    if (now.step == printed_step_) return;
    const int64_t tenth = std::max<int64_t>(now.total / 10, 1);
    const bool milestone = now.total >= 10 && now.step / tenth > printed_step_ / tenth;
    if (!last && !milestone && printed_step_ > 0 && time - printed_at_ < seconds_between_lines) return;
    printed_step_ = now.step;
    put(progress_line(now, false, columns()) + "\n");
  }
  printed_at_ = time;
}

int64_t Progress::columns() const {
  return terminal_ ? terminal_columns(STDERR_FILENO, 80) : std::numeric_limits<int64_t>::max();
}

void Progress::together(const std::vector<std::string>& lines) {
  if (quiet) return;
  const double time = seconds_now();
  if (time - printed_at_ < (terminal_ ? seconds_between_rewrites : seconds_between_lines)) return;
  if (terminal_) {
    if (open_) close_line();
    quiet = !io::rewrite_error_lines(lines, num_together_);
    num_together_ = lines.size();
  } else {
    for (const std::string& line : lines) put(line + "\n");
  }
  printed_at_ = time;
}

namespace {

/// False while too little of a loop is done to predict its end.
bool is_predictable(const WorkDone& now) { return now.seconds >= 1 && now.share >= 0.02; }

}  // namespace

ProgressScope::ProgressScope(Progress& progress, const std::string& label)
    : progress_(progress), scope_([&progress, label](const WorkDone& now) {
        progress.work({.label = now.part.empty() ? label : label + ", " + now.part,
                       .share = now.share,
                       .seconds_left = is_predictable(now) ? now.seconds_left : -1,
                       .began = seconds_now() - now.seconds});
      }) {
  progress.work({.label = label});
}

}  // namespace heed
