// Process groups started by mpirun or srun.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "heed/core/distributed/process_group.h"

namespace heed {

/// How this process was started, from the environment.
struct LaunchInfo {
  std::string by;      ///< "mpirun" or "srun"
  int64_t rank = 0;    ///< of all processes, from 0
  int64_t size = 1;    ///< number of processes
  int64_t place = -1;  ///< among those on this machine; -1 where that is not said
};

/// The launch of this process as one of several; empty where it is the only one.
std::optional<LaunchInfo> launch_info();

/// Joins the others through OpenMPI, whose library is opened now and not before. A usage Error where Heed was
/// built without (HEED_MPI=OFF), Fault::device where the library is missing or is another's. To be left by
/// all together: its destructor waits for the others. A process that gives no sign of life for `timeout`
/// seconds ends all the others, with Fault::device as their code, and is named; 0: they wait for ever.
std::unique_ptr<ProcessGroup> join_by_mpi(double timeout);

/// "Open MPI v4.1.4", or "no: " and why not; joins nothing.
std::string mpi_words();

}  // namespace heed
