// NCCL, opened when several processes with a GPU each train together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heed/core/distributed/process_group.h"

namespace heed::cuda {

/// Why processes with these GPUs, each "HOST ADDRESS", cannot sum by NCCL: two of them share one. Empty: they
/// can.
std::string why_not_apart(std::vector<std::string> gpus);

/// AllReduce over the group's devices, one a process, on a stream of their own beside that of the
/// computation: they begin as soon as what was computed before is there, also inside a captured step. Members
/// meet by an id that goes through the group. Null for all where one of them cannot, and where two share a
/// GPU, with the reason in `why`.
std::unique_ptr<AllReduce> nccl_all_reduce(ProcessGroup& group, std::string& why);

}  // namespace heed::cuda
