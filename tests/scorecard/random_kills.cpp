// Rows L1 and L5: a run that is killed at random times resumes as if uninterrupted.
#include <signal.h>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

struct Kills {
  Tally weights, logs;
  int64_t max_lost = 0, runs = 0;
};

/// Kills runs at moments spread evenly over their time, up to three times each, and lets them end.
Kills kill_often(const Scene& scene, int64_t kills) {
  const Reference reference = reference_run(scene);
  const std::string complaint = complaint_on_logs(run_of(scene, "reference"), tiny_steps);
  Kills found;
  if (!complaint.empty()) found.logs.fault("the undisturbed run: " + complaint);
  std::mt19937_64 generator(scene.seed);
  std::uniform_real_distribution<double> moment(0, reference.seconds);
  for (int64_t done = 0; done < kills;) {
    const std::string name = text("killed", found.runs++);
    const Path run = run_of(scene, name);
    std::string moments, torn, wrong;
    int64_t here = 0, lost = 0;
    for (const int64_t wanted = std::min<int64_t>(1 + found.runs % 3, kills - done); here < wanted;) {
      const double delay = moment(generator);
      const bool there = io::exists(run);
      Process process(scene.heed(there ? tiny_resume(name) : tiny_train(scene, name)));
      sleep_for(delay);
      process.signal(SIGKILL);
      const Ended end = process.wait();
      if (end.ok()) break;  // it was quicker than the kill
      if (end.signal != SIGKILL) {
        wrong = text("before a kill: ", end.said());
        break;
      }
      ++here;
      moments += text(moments.empty() ? "" : ", ", static_cast<int64_t>(1000 * delay), " ms");
      if (torn.empty()) torn = complaint_on_torn_logs(run);
      const std::vector<int64_t> kept = checkpoints_of(run);
      lost = std::max(lost, logged_step(run) - (kept.empty() ? 0 : kept.back()));
    }
    if (here == 0 && wrong.empty()) {
      io::remove_all(run);
      continue;
    }
    if (wrong.empty()) wrong = finish(scene, name);
    if (wrong.empty() && weights_hash(run) != reference.hash)
      wrong = "other weights than the undisturbed run";
    if (wrong.empty() && lost > tiny_checkpoint) wrong = text(lost, " steps were lost");
    found.max_lost = std::max(found.max_lost, lost);
    if (torn.empty()) torn = complaint_on_logs(run, tiny_steps);
    for (int64_t i = 0; i < std::max<int64_t>(here, 1); ++i) {
      found.weights.add(text(name, " killed at ", moments), wrong);
      found.logs.add(text(name, " killed at ", moments), torn);
    }
    done += std::max<int64_t>(here, 1);
    if (wrong.empty() && torn.empty()) io::remove_all(run);
  }
  return found;
}

}  // namespace

Result killed_and_resumed(const Scene& scene) {
  const Kills found = kill_often(scene, scene.amount(12, 200));
  return found.weights.result(text(" kills in ", found.runs, " runs ended with the same SHA-256; at most ",
                                   found.max_lost, " steps lost, 0 manual fixes"));
}

Result logs_after_kills(const Scene& scene) {
  const Kills found = kill_often(scene, scene.amount(8, 200));
  return found.logs.result(
      " kills left whole lines but the last; after resume each of 200 steps once, in both files");
}

}  // namespace heed::scorecard
