// Lines for people who wait.
#include "train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace heed {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string clock_text(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  char buffer[64];
  if (s >= 3600) {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld:%02lld", static_cast<long long>(s / 3600),
                  static_cast<long long>(s / 60 % 60), static_cast<long long>(s % 60));
  } else {
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld", static_cast<long long>(s / 60),
                  static_cast<long long>(s % 60));
  }
  return buffer;
}

std::string short_number(double value) {
  char buffer[32];
  if (value >= 1e6)
    std::snprintf(buffer, sizeof buffer, "%.2fM", value / 1e6);
  else if (value >= 1e3)
    std::snprintf(buffer, sizeof buffer, "%.1fk", value / 1e3);
  else
    std::snprintf(buffer, sizeof buffer, "%.0f", value);
  return buffer;
}

void Progress::Now::take_score(int64_t at, const std::string& name, double value) {
  validated = at;
  if (name == "loss") validation = value;
  if (name == "estimate") estimate = value;
  if (name == "accuracy") accuracy = value;
  if (name == "bleu") bleu = value;
}

Progress::Progress() {
  const char* kind = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && !(kind != nullptr && std::strcmp(kind, "dumb") == 0);
}

void Progress::put(const std::string& words) {
  if (std::fwrite(words.data(), 1, words.size(), stderr) != words.size() || std::fflush(stderr) != 0)
    quiet = true;
}

void Progress::close_line() {
  if (open_ && !quiet) put("\n");
  open_ = false;
}

void Progress::finish() {
  close_line();
  printed_step_ = 0;
}

void Progress::say(const std::string& label, const std::string& text) {
  if (quiet) return;
  close_line();
  put("  " + label + std::string(label.size() < 11 ? 12 - label.size() : 1, ' ') + text + "\n");
}

std::string Progress::line(const Now& now) const {
  char buffer[256];
  const int wide = std::snprintf(nullptr, 0, "%lld", static_cast<long long>(now.total));
  int used = std::snprintf(buffer, sizeof buffer, "  step %*lld/%lld", wide, static_cast<long long>(now.step),
                           static_cast<long long>(now.total));
  std::string out(buffer, static_cast<size_t>(used));
  if (terminal_) {
    const int64_t full = now.total > 0 ? 18 * now.step / now.total : 0;
    out += " [" + std::string(static_cast<size_t>(full), '#') +
           std::string(static_cast<size_t>(18 - full), '.') + "]";
  }
  used = std::snprintf(buffer, sizeof buffer, " %3lld%%",
                       static_cast<long long>(now.total > 0 ? 100 * now.step / now.total : 0));
  out += std::string(buffer, static_cast<size_t>(used));
  const auto add = [&](const char* format, double value) {
    const int n = std::snprintf(buffer, sizeof buffer, format, value);
    out += std::string(buffer, std::min(static_cast<size_t>(n), sizeof buffer - 1));
  };
  add("  train %.3f", now.loss);
  if (now.validation >= 0) add("  valid %.3f", now.validation);
  if (now.estimate >= 0) add(" (estimate %.3f)", now.estimate);
  if (now.accuracy >= 0) add("  accuracy %.3f", now.accuracy);
  if (now.bleu >= 0) add("  bleu %4.1f", now.bleu);
  if (now.validation >= 0 && now.validated != now.step) out += text(" @", now.validated);
  out += "  " + short_number(now.tokens_per_second) + " tok/s";
  add("  grad %.2f", now.norm);
  out += "  eta " + clock_text(now.seconds_left);
  return out;
}

void Progress::step(const Now& now) {
  if (quiet) return;
  const double time = seconds_now();
  const bool last = now.step == now.total;
  if (terminal_) {
    if (!last && time - printed_at_ < 0.2) return;
    put("\r" + line(now) + "\033[K");
    open_ = true;
  } else {
    if (now.step == printed_step_) return;
    const int64_t tenth = std::max<int64_t>(now.total / 10, 1);
    const bool milestone = now.total >= 10 && now.step / tenth > printed_step_ / tenth;
    if (!last && !milestone && printed_step_ > 0 && time - printed_at_ < 10) return;
    printed_step_ = now.step;
    put(line(now) + "\n");
  }
  printed_at_ = time;
}

}  // namespace heed
