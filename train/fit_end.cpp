// Words for the end of fit().
#include "heed/train/fit_end.h"

#include <csignal>

namespace heed {
namespace {

/// "1,200 steps"
std::string steps_text(int64_t steps) {
  std::string digits = std::to_string(steps);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + (steps == 1 ? " step" : " steps");
}

/// The name of a signal of StopSignals.
std::string signal_name(int number) {
  switch (number) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGXCPU:
      return "SIGXCPU";
    default:
      return text("signal ", number);
  }
}

std::string reason(const FitResult& result, const FitOptions& options) {
  switch (result.end) {
    case FitEnd::patience:
      return text("no better validation in ", options.patience, " (patience)");
    case FitEnd::score:
      return text("a validation is as good as ", options.stop_score, " (stop_score)");
    case FitEnd::time_limit:
      return text(options.time_limit, " seconds are over (time_limit)");
    case FitEnd::signal:
      return signal_name(result.stopped_by) + " came (signal)";
    case FitEnd::steps:
      break;
  }
  if (options.epochs == 0) return "all are taken";
  return options.epochs == 1 ? "its epoch is over" : text("all ", options.epochs, " epochs are over");
}

/// Where the weights are, and how to go on; empty where that needs no words.
std::string what_is_kept(const FitResult& result, const FitOptions& options, int64_t steps_taken) {
  const bool resumes = result.end == FitEnd::signal || result.end == FitEnd::time_limit;
  if (options.folder.empty()) return resumes ? "Nothing is saved, since FitOptions::folder is empty." : "";
  if (steps_taken == 0 && result.end == FitEnd::score)
    return text(options.folder,
                " was complete, so no step was taken. Set FitOptions::stop_score = 0 to go on.");
  if (steps_taken == 0 && !resumes)
    return text(options.folder, " was complete, so no step was taken. Raise FitOptions::",
                result.end == FitEnd::patience ? "patience"
                : options.epochs > 0           ? "epochs"
                                               : "steps",
                " to go on.");
  if (resumes && result.step == 0) return text("Nothing is saved yet in ", options.folder, ".");
  if (resumes)
    return text("Saved at step ", result.step, " in ", options.folder, "; run the program again to resume.");
  std::string words = text("Saved at step ", result.step, " in ", options.folder);
  if (result.best_step > 0 && result.best_step != result.step)
    words += text("; load_best() loads the best weights, those of step ", result.best_step);
  return words + ".";
}

}  // namespace

const char* to_string(FitEnd end) {
  // in the order of FitEnd
  constexpr const char* names[] = {"steps", "patience", "score", "time_limit", "signal"};
  return names[static_cast<size_t>(end)];
}

std::string describe_end(const FitResult& result, const FitOptions& options, int64_t steps_taken) {
  const std::string kept = what_is_kept(result, options, steps_taken);
  return text("fit: ended after ", steps_text(result.step), ": ", reason(result, options),
              kept.empty() ? "" : "\n", kept, "\n");
}

}  // namespace heed
