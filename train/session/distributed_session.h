// Runs train and resume in one process or in those that mpirun or srun has started.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "heed/core/distributed/single_process.h"
#include "heed/train/program.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// What a session of training begins with.
struct Opening {
  Config config;
  RunFolder folder;
  std::optional<Checkpoint> from = {};  ///< a checkpoint of the run, to resume from
  std::optional<Checkpoint> initial =
      {};  ///< weights of another run (train/run/weights_from_run.h), for the first step
};

/// --collective-timeout: how long several processes wait for a silent one; see join_processes().
inline constexpr CommandOption collective_timeout_option{
    "collective-timeout", "SECONDS",
    "with several processes: end when one is silent for so long (default: 600; 0: never)"};

/// Trains as a member of the group of processes that this one was started in, or alone. `open` is given the
/// number of processes; it is called in the first process only, and the others receive what it returns.
/// Returns the exit code. An error that all processes meet calls `failed` in each, the first prints it, and
/// all end. A process that fails alone prints its error and ends all at once.
int train_as_started(
    const ParsedArguments& arguments, const std::function<Opening(int64_t processes)>& open,
    const std::function<void()>& failed = [] {});

/// Multiplies the batch of the config by the number of processes: each takes a batch of that size.
void widen_batch(Config& config, int64_t processes);

}  // namespace heed
