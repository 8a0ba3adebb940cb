// Joins processes through MPI, divides a machine among its processes, and ends all of them after an error.
#include "heed/train/distributed/processes.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "heed/core/device.h"
#include "heed/core/distributed/mpi.h"
#include "heed/core/distributed/single_process.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

/// Chooses one GPU for this process, number `place` on its machine, by CUDA_VISIBLE_DEVICES: one of those
/// that the variable names already.
void take_gpu(int64_t place) {
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> gpus{""};
  for (const char letter : std::string_view(given != nullptr ? given : "")) {
    if (letter == ',')
      gpus.emplace_back();
    else
      gpus.back() += letter;
  }
  const std::string own_gpu = given == nullptr ? text(place) : gpus[static_cast<size_t>(place) % gpus.size()];
  ::setenv("CUDA_VISIBLE_DEVICES", own_gpu.c_str(), 1);
}

/// Divides the cores of the machine among its processes, unless mpirun has bound them to cores, or the number
/// of threads is chosen.
void share_cores(const LocalRanks& local) {
  cpu_set_t cores;
  const auto num_cores = static_cast<int>(std::thread::hardware_concurrency());
  const bool is_bound = ::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) < num_cores;
  const bool is_chosen = std::getenv("HEED_THREADS") != nullptr || threads() < num_cores;
  if (!is_bound && !is_chosen) set_threads(std::max(1, threads() / static_cast<int>(local.count)));
}

/// Joins the processes that `launch` describes; see join_processes().
std::unique_ptr<ProcessGroup> join_launched(const LaunchInfo& launch, double timeout) {
  if (default_device == Device::cuda)
    fail("join_processes: ", launch.by, " started ", launch.size,
         " processes, and this one is on its GPU already. Call join_processes() first in main(), before the "
         "default device is set, so that each takes a GPU of its own.");
  // An MPI that knows CUDA opens it while joining, so the GPU is chosen before where that is possible.
  if (launch.place >= 0) take_gpu(launch.place);
  std::unique_ptr<ProcessGroup> group = join_by_mpi(timeout);
  const LocalRanks local = local_ranks(*group);
  if (launch.place < 0) take_gpu(local.place);
  share_cores(local);
  return group;
}

/// Prints the error of this process, and ends all processes with its code.
[[noreturn]] void abandon_group(ProcessGroup& group, Fault fault, const char* message) {
  io::print_error(text("error: ", describe_rank(group), ": ", message, "\n"));
  std::fflush(nullptr);
  group.abandon(static_cast<int>(fault));
  std::abort();  // it does not return
}

}  // namespace

ProcessGroup& join_processes(double timeout) {
  static const std::optional<LaunchInfo> launch = launch_info();
  if (!launch) return single_process();
  static const std::unique_ptr<ProcessGroup> group = join_launched(*launch, timeout);
  return *group;
}

void spread_files(ProcessGroup& group, std::vector<NamedBytes>& files) {
  int64_t count = static_cast<int64_t>(files.size());
  group.broadcast(&count, sizeof count);
  files.resize(static_cast<size_t>(count));
  for (NamedBytes& file : files) {
    file.name = group.broadcast(file.name);
    file.bytes = group.broadcast(file.bytes);
  }
}

void spread_checkpoint(ProcessGroup& group, const Path& run, std::optional<Checkpoint>& checkpoint) {
  int64_t step = group.is_main() && checkpoint ? checkpoint->step : -1;
  group.broadcast(&step, sizeof step);
  if (step < 0) return;
  std::vector<NamedBytes> files;
  if (group.is_main()) {
    for (const auto& [name, bytes] : checkpoint->files) files.push_back({name, bytes});
  }
  spread_files(group, files);
  if (group.is_main()) return;
  checkpoint = Checkpoint{.folder = checkpoint_folder(run, step), .step = step, .files = {}};
  for (NamedBytes& file : files) checkpoint->files[file.name] = std::move(file.bytes);
}

void end_all(ProcessGroup& group) {
  try {
    throw;
  } catch (const Error& error) {
    abandon_group(group, error.fault(), error.what());
  } catch (const std::bad_alloc& error) {
    abandon_group(group, Fault::memory, out_of_memory_text(error).c_str());
  } catch (const std::exception& error) {
    abandon_group(group, Fault::internal, error.what());
  } catch (...) {
    abandon_group(group, Fault::internal, "an exception that is no std::exception");
  }
}

}  // namespace heed
