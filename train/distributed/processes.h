// The processes that mpirun or srun has started together with this one.
#pragma once

#include <optional>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// Joins the processes that mpirun or srun has started with this one, and gives all calls the same group: a
/// group of one where this process was started alone. The first call also gives each process of a machine a
/// GPU of its own and its share of the cores, unless CUDA_VISIBLE_DEVICES, HEED_THREADS or set_threads() have
/// said so. With GPUs call it first in main(), before the default device is set; on the CPU fit() does.
/// The group parts when the program exits, where each process waits for the others. A process that gives no
/// sign of life for `timeout` seconds (0: for ever) ends the others; the first call decides. Fails as
/// join_by_mpi() does, and where this process computes on a GPU already.
ProcessGroup& join_processes(double timeout = 600);

/// Everybody gets the files of the main process.
void spread_files(ProcessGroup& group, std::vector<NamedBytes>& files);
/// Everybody gets the main process's checkpoint of the run `run`, where it has one.
void spread_checkpoint(ProcessGroup& group, const Path& run, std::optional<Checkpoint>& checkpoint);

/// In a handler of what this process alone has thrown, so that the others would wait for it: prints the
/// error, and ends all processes with its code.
[[noreturn]] void end_all(ProcessGroup& group);

}  // namespace heed
