// Measurements by this program as a subprocess, each kept in a file so that a later call finds it.
#pragma once

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/subprocess.h"
#include "heed/train/experiments/time_budget.h"

namespace heed {

/// The machine options of this call as part of a file's name: "-threads-2"; empty: none. Measurements with
/// different options are kept in different files.
std::string machine_word(const ComparisonOptions& options);
/// Runs this program as a subprocess to its end, with the machine options of the call. Throws Stopped on a
/// signal and when the budget is spent, and what the subprocess failed with as an Error.
ChildEnd run_heed(std::vector<std::string> arguments, const ComparisonOptions& options,
                  const TimeBudget& budget);
/// The number under the first of these keys that a subprocess's JSON has; runs it once and keeps what it
/// printed in `file`. Throws as run_heed(), and Fault::data where the file has none.
double measured_number(const Path& file, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const ComparisonOptions& options);
/// Calls read(), and adds `advice` to the text of its errors.
template <class Read>
auto with_advice(const std::string& advice, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.fault(), text(error.what(), " ", advice));
  }
}
/// Calls read(), which reads a measurement from `file`; adds to its errors how to repeat the measurement.
template <class Read>
auto with_remeasuring_advice(const Path& file, const Read& read) {
  return with_advice(text("Remove ", file, ": the next call measures it again."), read);
}

}  // namespace heed
