// Train and resume where mpirun or srun has started several processes.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/group.h"
#include "train/checkpoint.h"
#include "train/commands/verb.h"
#include "train/run_folder.h"

namespace heed {

/// What a sitting begins with.
struct Opening {
  Config config;
  RunFolder folder;
  std::optional<Checkpoint> from = {};
};

/// How long several processes wait for one of them; see join_by_mpi().
inline constexpr VerbOption collective_timeout_option{
    "collective-timeout", "SECONDS",
    "of several processes: end where one gives no sign of life for so long (default: 600; 0: never)"};

/// Trains in what `open` makes. Alone, or as a member of the group this process was started in: then `open`
/// runs in the first process only, and the others get what it made. `open` is given the number of processes.
/// Returns the exit code. What goes wrong for all calls `failed` in each; the first process says it, and then
/// all end. A process that fails by itself says so and ends all at once.
int train_as_started(
    const Invocation& call, const std::function<Opening(int64_t processes)>& open,
    const std::function<void()>& failed = [] {});

/// The batch that so many processes share, each of which was promised the batch of the config.
void widen_batch(Config& config, int64_t processes);

/// together() for the work of the first member.
void together_led(Group* group, const std::function<void()>& work);

/// Everybody gets the files of the first member.
void spread_files(Group& group, std::vector<NamedBytes>& files);

}  // namespace heed
