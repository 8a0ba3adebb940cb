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

/// Copies the files of the main process to all others.
void spread_files(ProcessGroup& group, std::vector<NamedBytes>& files);
/// Copies the main process's checkpoint of the run `run`, where it has one, to all others.
void spread_checkpoint(ProcessGroup& group, const Path& run, std::optional<Checkpoint>& checkpoint);

/// Called in a catch block of an exception that this process alone has thrown: prints the error, and ends all
/// processes with its code, since the others would wait for this one.
[[noreturn]] void end_all(ProcessGroup& group);

}  // namespace heed
