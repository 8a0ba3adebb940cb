// AllReduce by NCCL, whose library is opened when several processes with a GPU each train together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/core/distributed/process_group.h"

namespace heed::cuda {

/// Says which GPU two processes share, for which NCCL refuses them; empty where each process has its own.
/// `gpus` has "HOST ADDRESS" for each process.
std::string why_gpus_are_shared(std::vector<std::string> gpus);

/// AllReduce over the group's devices, one for each process, on a stream beside that of the computation: a
/// sum begins once earlier work is finished, also inside a captured step. Collective: every process must call
/// it. Null for all members, with the reason in `why`, where one has no NCCL or two share a GPU.
std::unique_ptr<AllReduce> nccl_all_reduce(ProcessGroup& group, std::string& why);

}  // namespace heed::cuda
