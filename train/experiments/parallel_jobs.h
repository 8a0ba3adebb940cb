// How many trainings run at once on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/progress/progress.h"

namespace heed {

/// The value of --jobs: a number from 1 to 1000, or 0 for "auto". A usage error for anything else.
int64_t parse_jobs(const std::string& value);

/// The largest number of runs, at most `wanted`, whose memory fits into `free` bytes together, whichever of
/// them run at once; at least 1. `needs` has the bytes of each run.
int64_t jobs_that_fit(std::vector<int64_t> needs, int64_t free, int64_t wanted);

/// How many of these runs, which have no scores yet, are trained at once: options.jobs, but no more than
/// there are runs and threads, and than fit into free memory by the estimate of `heed train --dry-run`, which
/// is made for each label. Says what was decided and why. 1 without any estimate where one job is asked for.
/// Throws Stopped on a stop signal and when the budget is spent.
int64_t num_jobs(const std::vector<const PlannedRun*>& plans, const ComparisonOptions& options,
                 Progress& progress);

/// The machine options of each of so many runs at once: they divide the threads among them.
std::vector<std::string> machine_options_of_job(std::vector<std::string> machine, int64_t jobs);

}  // namespace heed
