// Train and resume where mpirun or srun has started several processes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "heed/core/distributed/single_process.h"
#include "heed/train/commands/command.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// What a session begins with.
struct Opening {
  Config config;
  RunFolder folder;
  std::optional<Checkpoint> from = {};  ///< the run's own, to resume from
  std::optional<Checkpoint> initial =
      {};  ///< of another run (train/run/initial_weights.h), for the first step
};

/// How long several processes wait for one of them; see join_processes().
inline constexpr CommandOption collective_timeout_option{
    "collective-timeout", "SECONDS",
    "with several processes: end when one is silent for so long (default: 600; 0: never)"};

/// Trains in what `open` makes, as a member of the group this process was started in, which is of one where
/// nobody started several: `open` runs in the first process only, and the others get what it made. `open` is
/// given the number of processes. Returns the exit code. What goes wrong for all calls `failed` in each; the
/// first process says it, and then all end. A process that fails by itself says so and ends all at once.
int train_as_started(
    const ParsedArguments& arguments, const std::function<Opening(int64_t processes)>& open,
    const std::function<void()>& failed = [] {});

/// The batch that so many processes share, each of which was promised the batch of the config.
void widen_batch(Config& config, int64_t processes);

}  // namespace heed
