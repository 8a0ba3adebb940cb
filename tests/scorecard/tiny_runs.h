// Runs of a fifth of a second, and what can be seen of a run from outside: its checkpoints, its logs, its
// weights.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/scorecard/scorecard.h"

namespace heed::scorecard {

/// Steps of a tiny run, and steps between two of its checkpoints and validations.
inline constexpr int64_t tiny_steps = 200, tiny_checkpoint = 20, tiny_validation = 50;

/// Puts a text of 12 KB into the room, once; its name.
std::string plant_text(const Scene& scene);

/// Words of `heed train`: a character model of a thousand parameters with dropout and accumulation, whose
/// steps all write to metrics.jsonl. `more` comes last and wins. Plants text.txt in the room.
std::vector<std::string> tiny_train(const Scene& scene, const std::string& name,
                                    const std::vector<std::string>& more = {});

/// Words of `heed resume runs/NAME`, on one thread.
std::vector<std::string> tiny_resume(const std::string& name, const std::vector<std::string>& more = {});

/// The folder of a run in the room.
Path run_of(const Scene& scene, const std::string& name);

/// Steps of the checkpoints that have a final name, in order.
std::vector<int64_t> checkpoints_of(const Path& run);
/// The step of the last whole line of metrics.jsonl; 0 when there is none.
int64_t logged_step(const Path& run);
/// SHA-256 of weights and optimizer state in the last checkpoint, "none" without one.
std::string weights_hash(const Path& run);
/// The losses, validations included, as they stand in metrics.jsonl: one text a line, without the speed.
std::vector<std::string> loss_lines(const Path& run);

/// Goes on with a run to its end, or begins it where a kill left no folder, with these further words. Returns
/// what is wrong, if anything.
std::string finish(const Scene& scene, const std::string& name,
                   const std::vector<std::string>& for_train = {},
                   const std::vector<std::string>& for_resume = {});

/// A preset, with less data than it would take: the arithmetic of a step stays what it is.
struct Recipe {
  std::string preset;
  std::vector<std::string> less;
  int64_t steps = 0;  ///< that a row affords: 20, or fewer where a step is long
};
/// All presets whose steps a processor can take (more than 1 TFLOP or 8 GB are too much); in the short form
/// those named, with so many steps.
struct Recipes {
  std::vector<Recipe> all;
  std::string left_out;  ///< ", left out: ..." or nothing
};
Recipes recipes(const Scene& scene, const std::set<std::string>& in_short, int64_t short_steps);

/// What a disturbance left behind in runs/ that has no business there: names that begin with a dot. Empty
/// when clean.
std::string leftovers(const Scene& scene);

/// What is wrong with metrics.jsonl and the TensorBoard file as a kill left them: a line that cannot be read
/// which is not a torn last one, a step twice or out of order.
std::string complaint_on_torn_logs(const Path& run);
/// What is wrong with the logs of a finished run: any step up to `steps` that is missing or there twice.
std::string complaint_on_logs(const Path& run, int64_t steps);

/// The reference: one tiny run from start to end without disturbance, in the room under the name "reference".
struct Reference {
  std::string hash;
  double seconds = 0;
  std::vector<std::string> losses;
};
Reference reference_run(const Scene& scene, const std::vector<std::string>& more = {});

}  // namespace heed::scorecard
