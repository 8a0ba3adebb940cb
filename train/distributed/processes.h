// The processes that mpirun or srun has started together with this one.
#pragma once

#include <optional>
#include <vector>

#include "heed/core/distributed/process_group.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

/// Joins the processes that mpirun or srun has started with this one. All calls return the same group, which
/// has one member where this process was started alone. The first call also gives each process of a machine
/// its own GPU, among those of CUDA_VISIBLE_DEVICES, and its share of the cores, unless HEED_THREADS or
/// set_threads() chose the threads. With GPUs call it first in main(), before the default device is set; on
/// the CPU fit() calls it. At the program's exit each process waits for the others. A process that is silent
/// for `timeout` seconds (0: for ever) ends the others; the first call's timeout holds. Fails as
/// join_by_mpi() does, and where this process computes on a GPU already.
ProcessGroup& join_processes(double timeout = 600);

/// Copies the files of the main process to all others.
void spread_files(ProcessGroup& group, std::vector<NamedBytes>& files);
/// Copies the main process's checkpoint of the run `run`, where it has one, to all others.
void spread_checkpoint(ProcessGroup& group, const Path& run, std::optional<Checkpoint>& checkpoint);

/// Ends all processes after an exception of this process alone, for which the others would wait. Called in
/// its catch block: prints the error, and ends them with its exit code.
[[noreturn]] void end_all(ProcessGroup& group);

}  // namespace heed
