// Runs train and resume in one process or in those that mpirun or srun has started.
#pragma once

#include <functional>
#include <optional>

#include "heed/core/distributed/single_process.h"
#include "heed/train/program.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"

namespace heed {

/// An opened run, with which a session of training begins.
struct Opening {
  Config config;
  RunFolder folder;
  std::optional<Checkpoint> checkpoint = {};        ///< checkpoint of the run, to resume from
  std::optional<Checkpoint> weights_from_run = {};  ///< weights of another run, to begin from
};

/// --collective-timeout: how long several processes wait for a silent one; see join_processes().
inline constexpr CommandOption collective_timeout_option{
    "collective-timeout", "SECONDS",
    "with several processes: end when one is silent for so long (default: 600; 0: never)"};

/// Trains together with the processes that mpirun or srun has started with this one, or alone, and returns
/// the exit code. `open` takes the number of processes; it is called in the first process only, which sends
/// the opened run to the others. After an error that all processes share, each calls `failed`, the first
/// prints the error, and all end. A process that fails alone prints its error and ends all processes at once.
int train_as_started(
    const ParsedArguments& arguments, const std::function<Opening(int64_t processes)>& open,
    const std::function<void()>& failed = [] {});

/// Multiplies the batch of the config by the number of processes: each takes a batch of that size.
void widen_batch(Config& config, int64_t processes);

}  // namespace heed
