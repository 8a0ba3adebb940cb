// Joining the others, and being given what the first process has opened.
#include "heed/train/commands/distributed_session.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/commands/run_session.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/initial_weights.h"

namespace heed {
namespace {

/// One GPU a process, unless somebody has seen to that, as srun does. Whatever opens CUDA first goes by it.
void take_gpu(int64_t place) {
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> gpus{""};
  for (const char* at = given != nullptr ? given : ""; *at != '\0'; ++at) {
    if (*at == ',')
      gpus.emplace_back();
    else
      gpus.back() += *at;
  }
  const std::string own_gpu = given == nullptr ? text(place) : gpus[static_cast<size_t>(place) % gpus.size()];
  ::setenv("CUDA_VISIBLE_DEVICES", own_gpu.c_str(), 1);
}

/// The cores of the machine divided, unless somebody has seen to that: mpirun binds its processes to cores.
void share_cores(const ParsedArguments& arguments, const LocalRanks& here) {
  cpu_set_t cores;
  const bool bound = ::sched_getaffinity(0, sizeof cores, &cores) == 0 &&
                     CPU_COUNT(&cores) < static_cast<int>(std::thread::hardware_concurrency());
  if (!arguments.has("threads") && std::getenv("HEED_THREADS") == nullptr && !bound)
    set_threads(std::max(1, threads() / static_cast<int>(here.count)));
}

/// The first member's checkpoint, for the others. `folder`: where the others say that it lies.
void spread_checkpoint(ProcessGroup& group, std::optional<Checkpoint>& checkpoint, const Path& folder) {
  std::vector<NamedBytes> files;
  int64_t step = group.is_main() && checkpoint ? checkpoint->step : -1;
  group.broadcast(&step, sizeof step);
  if (step < 0) return;
  if (group.is_main()) {
    for (const auto& [name, bytes] : checkpoint->files) files.push_back({name, bytes});
  }
  spread_files(group, files);
  if (group.is_main()) return;
  checkpoint = Checkpoint{.folder = checkpoint_folder(folder, step), .step = step, .files = {}};
  for (NamedBytes& file : files) checkpoint->files[file.name] = std::move(file.bytes);
}

/// What the first member has opened, for the others.
Opening given_by_first(ProcessGroup& group, std::optional<Opening> first) {
  if (group.size() == 1) return std::move(*first);
  const bool is_main = group.is_main();
  const std::string config = group.broadcast(is_main ? to_toml(first->config) : "");
  const std::string path = group.broadcast(is_main ? first->folder.path().string() : "");
  if (!is_main) {
    RunFolder folder = RunFolder::elsewhere(path);
    first.emplace(Opening{read_config(config, folder.config().string()), std::move(folder)});
  }
  spread_checkpoint(group, first->from, path);
  spread_checkpoint(group, first->initial, initial_folder(path));
  return std::move(*first);
}

void check_same_device(ProcessGroup& group) {
  const std::vector<std::string> devices = group.all_gather(std::string(to_string(default_device)));
  for (size_t i = 1; i < devices.size(); ++i) {
    if (devices[i] == devices[0]) continue;
    throw CollectiveError(Fault::device, text("device: process 1 of ", devices.size(), " computes on ",
                                              devices[0], ", process ", i + 1, " on ", devices[i],
                                              ". Start as many processes a machine as it has GPUs, or give ",
                                              "all --device cpu."));
  }
}

int train_in_group(const ParsedArguments& arguments, ProcessGroup& group,
                   const std::function<Opening(int64_t processes)>& open) {
  group.together([&] { apply_machine(arguments); });
  check_same_device(group);
  std::optional<Opening> first;
  group.together_on_main([&] { first.emplace(open(group.size())); });
  Opening opening = given_by_first(group, std::move(first));
  return train_in(opening, arguments, group);
}

/// How long others are waited for that give no sign of life, in seconds.
double collective_timeout(const ParsedArguments& arguments) {
  constexpr int64_t most = 1'000'000;
  const double seconds = arguments.number("collective-timeout", 600);
  if (seconds != 0 && !(seconds >= 1 && seconds <= static_cast<double>(most)))
    fail("--collective-timeout = ", seconds, ". It must be 1 to ", most, " seconds, or 0 to wait for ever.");
  return seconds;
}

[[noreturn]] void leave_alone(ProcessGroup& group, Fault fault, const char* what) {
  io::print_error(text("error: ", describe_rank(group), ": ", what, "\n"));
  std::fflush(nullptr);
  group.abandon(static_cast<int>(fault));
  std::abort();  // it does not return
}

}  // namespace

int train_as_started(const ParsedArguments& arguments, const std::function<Opening(int64_t processes)>& open,
                     const std::function<void()>& failed) {
  const double timeout = collective_timeout(arguments);
  const SaveSignal saves;  // from here on: what comes before the first step is answered after it
  if (!launch_info()) {
    try {
      return train_in_group(arguments, single_process(), open);
    } catch (...) {
      failed();
      throw;
    }
  }
  // An MPI that knows CUDA opens it when it is joined.
  if (const int64_t place = launch_info()->place; place >= 0) take_gpu(place);
  const std::unique_ptr<ProcessGroup> group = join_by_mpi(timeout);
  try {
    const LocalRanks here = local_ranks(*group);
    if (launch_info()->place < 0) take_gpu(here.place);
    share_cores(arguments, here);
    return train_in_group(arguments, *group, open);
  } catch (const CollectiveError& error) {
    // All of it before the group parts: mpirun ends every process soon after the first has ended.
    failed();
    if (group->is_main()) io::print_error(text("error: ", error.what(), "\n"));
    return static_cast<int>(error.fault());
  } catch (const Error& error) {
    leave_alone(*group, error.fault(), error.what());
  } catch (const std::bad_alloc&) {
    leave_alone(*group, Fault::memory, "out of memory. Use a smaller batch, length or model.");
  } catch (const std::exception& error) {
    leave_alone(*group, Fault::internal, error.what());
  }
}

void widen_batch(Config& config, int64_t processes) {
  if (processes == 1) return;
  if (config.train.batch_size > 0)
    config.train.batch_size *= processes;
  else
    config.train.batch_tokens *= processes;
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

}  // namespace heed
