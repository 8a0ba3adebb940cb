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
  int64_t rank = 0;    ///< rank among all processes, from 0
  int64_t size = 1;    ///< number of processes
  int64_t place = -1;  ///< number among the processes of this machine; -1 where it is unknown
};

/// How this process was started as one of several; empty where it is the only one.
std::optional<LaunchInfo> launch_info();

/// Joins the other processes through OpenMPI, whose library is opened by this call. A usage Error where Heed
/// was built without MPI (HEED_MPI=OFF), Fault::device where the library is missing or is not OpenMPI's. The
/// destructor is collective: it waits for the other processes. When a process sends no heartbeat for
/// `timeout` seconds, all others end with Fault::device as their code and name it; 0: they wait for ever.
std::unique_ptr<ProcessGroup> join_by_mpi(double timeout);

/// The version of MPI, "Open MPI v4.1.4", or "no: " and the reason why there is none. Joins no group.
std::string mpi_words();

}  // namespace heed
