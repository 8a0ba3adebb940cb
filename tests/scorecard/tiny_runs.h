// Runs of a fifth of a second, and what is visible of a run from outside: checkpoints, logs, weights.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/tests/scorecard/scorecard.h"

namespace heed::scorecard {

/// Steps of a tiny run, and steps between two of its checkpoints and validations.
inline constexpr int64_t tiny_steps = 200, tiny_checkpoint = 20, tiny_validation = 50;

/// Writes a text of 12 KB into the row's folder, once; returns its name.
std::string plant_text(const Scene& scene);

/// Arguments of `heed train`: a character model of a thousand parameters with dropout and gradient
/// accumulation that logs every step. `more` comes last and overrides. Writes text.txt.
std::vector<std::string> tiny_train(const Scene& scene, const std::string& name,
                                    const std::vector<std::string>& more = {});

/// Arguments of `heed resume runs/NAME`, with one thread.
std::vector<std::string> tiny_resume(const std::string& name, const std::vector<std::string>& more = {});

/// The folder of a run in the row's folder.
Path run_of(const Scene& scene, const std::string& name);

/// Steps of the complete checkpoints, in order.
std::vector<int64_t> checkpoints_of(const Path& run);
/// The step of the last complete line of metrics.jsonl; 0 when there is none.
int64_t logged_step(const Path& run);
/// SHA-256 of the weights and optimizer state of the last checkpoint; "none" without one.
std::string weights_hash(const Path& run);
/// The losses in metrics.jsonl, validation included: one text per line, without the speed.
std::vector<std::string> loss_lines(const Path& run);

/// Resumes a run to its end, or starts it where a kill left no folder, with these additional arguments.
/// Returns what is wrong, if anything.
std::string finish(const Scene& scene, const std::string& name,
                   const std::vector<std::string>& for_train = {},
                   const std::vector<std::string>& for_resume = {});

/// A preset with less data than usual: the computation of a step stays the same.
struct Recipe {
  std::string preset;
  std::vector<std::string> less;
  int64_t steps = 0;  ///< steps of a row: 20, or fewer where a step is long
};
/// All presets whose steps fit a CPU (at most 1 TFLOP and 8 GB); in the short form those in `in_short`, with
/// `short_steps`.
struct Recipes {
  std::vector<Recipe> all;
  std::string left_out;  ///< ", left out: ..." or nothing
};
Recipes recipes(const Scene& scene, const std::set<std::string>& in_short, int64_t short_steps);

/// Files that an interruption left in runs/: names that begin with a dot. Empty when clean.
std::string leftovers(const Scene& scene);

/// What is wrong with metrics.jsonl and the TensorBoard file after a kill: a damaged line other than the
/// last, or a step repeated or out of order.
std::string complaint_on_torn_logs(const Path& run);
/// What is wrong with the logs of a finished run: a step up to `steps` that is missing or repeated.
std::string complaint_on_logs(const Path& run, int64_t steps);

/// The reference: one uninterrupted tiny run, named "reference".
struct Reference {
  std::string hash;
  double seconds = 0;
  std::vector<std::string> losses;
};
Reference reference_run(const Scene& scene, const std::vector<std::string>& more = {});

}  // namespace heed::scorecard
