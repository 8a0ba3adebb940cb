// Joins the other processes, and receives the run that the first one has opened.
#include "heed/train/session/distributed_session.h"

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/weights_from_run.h"
#include "heed/train/session/run_session.h"

namespace heed {
namespace {

/// Sends the opening of the first process to the others, and returns it in all of them.
Opening given_by_first(ProcessGroup& group, std::optional<Opening> first) {
  if (group.size() == 1) return std::move(*first);
  const bool is_main = group.is_main();
  const std::string config = group.broadcast(is_main ? to_toml(first->config) : "");
  const std::string path = group.broadcast(is_main ? first->folder.path().string() : "");
  if (!is_main) {
    RunFolder folder = RunFolder::elsewhere(path);
    first.emplace(Opening{read_config(config, folder.config().string()), std::move(folder)});
  }
  spread_checkpoint(group, path, first->checkpoint);
  spread_checkpoint(group, weights_from_run_folder(path), first->weights_from_run);
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

/// How long to wait for a process that is silent, in seconds.
double collective_timeout(const ParsedArguments& arguments) {
  constexpr int64_t max_seconds = 1'000'000;
  const double seconds = arguments.number("collective-timeout", 600);
  if (seconds != 0 && !(seconds >= 1 && seconds <= static_cast<double>(max_seconds)))
    fail("--collective-timeout = ", seconds, ". It must be 1 to ", max_seconds,
         " seconds, or 0 to wait for ever.");
  return seconds;
}

}  // namespace

int train_as_started(const ParsedArguments& arguments, const std::function<Opening(int64_t processes)>& open,
                     const std::function<void()>& failed) {
  const double timeout = collective_timeout(arguments);
  const SaveSignal saves;  // from here on: a signal before the first step is answered after it
  if (!launch_info()) {
    try {
      return train_in_group(arguments, single_process(), open);
    } catch (...) {
      failed();
      throw;
    }
  }
  ProcessGroup& group = join_processes(timeout);
  try {
    return train_in_group(arguments, group, open);
  } catch (const CollectiveError& error) {
    // This comes before exit, where the group parts: mpirun ends every process soon after the first has
    // ended.
    failed();
    if (group.is_main()) io::print_error(text("error: ", error.what(), "\n"));
    return static_cast<int>(error.fault());
  } catch (...) {
    end_all(group);
  }
}

void widen_batch(Config& config, int64_t processes) {
  if (processes == 1) return;
  if (config.train.batch_size > 0)
    config.train.batch_size *= processes;
  else
    config.train.batch_tokens *= processes;
}

}  // namespace heed
