// Chooses the number of trainings at once by threads and memory.
#include "heed/train/experiments/parallel_jobs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "heed/core/device.h"
#include "heed/core/gpu_info.h"
#include "heed/core/io/byte_text.h"
#include "heed/core/io/number_text.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/experiments/child_measurement.h"
#include "heed/train/loop/machine_memory.h"

namespace heed {
namespace {

constexpr int64_t max_jobs = 1000;
constexpr int64_t too_many = std::numeric_limits<int64_t>::max();  // bytes of a run that does not fit alone

bool on_gpu() { return default_device != Device::cpu; }

/// Bytes that a run takes where its tensors lie, by its estimate; 0: it has none, since it cannot be trained;
/// `too_many`: it does not fit even alone.
int64_t needed_bytes(const PlannedRun& plan, const ComparisonOptions& options) {
  const Path file = options.folder / "estimates" / (plan.name + machine_word(options) + ".json");
  const std::string key = on_gpu() ? "tensor_bytes" : "memory_bytes";
  try {
    const double bytes = measured_number(
        file, {key}, {"train", write_plan(plan, options.folder).string(), "--dry-run", "--json"}, options);
    // On a GPU a captured step has a working set of its own, and a process a context and libraries.
    constexpr int64_t context = int64_t{1} << 30;
    return on_gpu() ? 2 * static_cast<int64_t>(bytes) + context : static_cast<int64_t>(bytes);
  } catch (const Error& error) {  // its training says why
    return error.fault() == Fault::memory ? too_many : 0;
  }
}

/// Bytes that runs may take together: a tenth of what is free is for everything else.
int64_t bytes_for_runs() { return (on_gpu() ? usable_gpu_bytes(gpu_free_bytes()) : free_bytes()) / 10 * 9; }

}  // namespace

int64_t parse_jobs(const std::string& value) {
  if (value == "auto") return 0;
  const std::optional<double> jobs = parsed_number(value);
  if (!jobs || *jobs != std::floor(*jobs) || *jobs < 1 || *jobs > max_jobs)
    fail("--jobs = '", shown(value, 40), "'. It is how many trainings run at once: a number from 1 to ",
         max_jobs, ", or auto for as many as threads and memory allow.");
  return static_cast<int64_t>(*jobs);
}

int64_t jobs_that_fit(std::vector<int64_t> needs, int64_t free, int64_t wanted) {
  std::ranges::sort(needs, std::greater());
  int64_t jobs = 0;
  for (const int64_t need : needs) {
    if (jobs == wanted || need > free) break;
    free -= need;
    ++jobs;
  }
  return std::max<int64_t>(jobs, 1);
}

int64_t num_jobs(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& options,
                 Progress& progress) {
  const auto num_runs = static_cast<int64_t>(plans.size());
  const int64_t asked = options.jobs > 0 ? options.jobs : max_jobs;
  const int64_t wanted = std::min<int64_t>({asked, num_runs, threads()});
  std::string why = wanted == num_runs ? text(num_runs, num_runs == 1 ? " is" : " are", " left to train")
                                       : text("there are ", threads(), " threads");
  int64_t jobs = std::max<int64_t>(wanted, 1);
  if (jobs > 1) {
    std::map<std::pair<std::string, GridPoint>, int64_t> by_model;
    std::vector<int64_t> needs;
    for (const PlannedRun* plan : plans) {
      const auto [need, is_new] = by_model.emplace(std::pair(plan->label, plan->point), 0);
      if (is_new) {
        progress.work({.label = "memory of " + plan->label});
        need->second = needed_bytes(*plan, options);
      }
      needs.push_back(need->second);
    }
    progress.erase();
    const int64_t free = bytes_for_runs();
    jobs = jobs_that_fit(needs, free, wanted);
    const int64_t largest = *std::ranges::max_element(needs);
    if (jobs < wanted)
      why =
          text(bytes_text(free), on_gpu() ? " of the GPU" : "", " are free for runs, and the largest takes ",
               largest == too_many ? "more" : bytes_text(largest));
  }
  if (options.jobs == 1) return jobs;
  const int64_t each = std::max<int64_t>(threads() / jobs, 1);
  std::string words = text(jobs, " at once");
  if (options.jobs > jobs) words += text(" instead of ", options.jobs);
  if (jobs != options.jobs) words += ": " + why;
  progress.say("jobs", words + text("; ", each, each == 1 ? " thread" : " threads", jobs > 1 ? " each" : ""));
  return jobs;
}

std::vector<std::string> machine_options_of_job(std::vector<std::string> machine, int64_t jobs) {
  if (jobs == 1) return machine;
  const std::string each = text(std::max<int64_t>(threads() / jobs, 1));
  const auto option = std::ranges::find(machine, "--threads");
  if (option == machine.end())
    machine.insert(machine.end(), {"--threads", each});
  else
    *std::next(option) = each;
  return machine;
}

}  // namespace heed
