// Row D4: several processes against one process with the whole batch.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

/// The numbers of a run's losses, in the order of its log.
std::vector<double> losses(const Scene& scene, const std::string& name) {
  std::vector<double> out;
  std::istringstream lines(io::read(run_of(scene, name) / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json(line, name);
    for (const auto& [key, value] : json.members()) {
      if (key.find("loss") != std::string::npos) out.push_back(value.real());
    }
  }
  return out;
}

}  // namespace

Result several_processes(const Scene& scene) {
  if (!have("mpirun")) return skip("there is no mpirun (Debian: openmpi-bin)");
  constexpr double hold = 1e-5;
  constexpr int64_t batch = 2;
  const int64_t steps = scene.amount(40, tiny_steps);
  Tally tally;
  double maximum = 0;
  const auto train = [&](const std::string& name, int64_t processes, int64_t of_each) {
    Command command = scene.heed(
        tiny_train(scene, name, {"--batch-size", std::to_string(of_each), "--steps", std::to_string(steps)}));
    if (processes > 1) {
      const std::vector<std::string> before{
          "mpirun", "--allow-run-as-root",    "--oversubscribe", "--bind-to", "none",
          "-n",     std::to_string(processes)};
      command.words.insert(command.words.begin(), before.begin(), before.end());
    }
    command.seconds = 300;
    const Ended end = run(command);
    return end.ok() ? std::string() : end.said();
  };
  for (int64_t processes = 2; processes <= scene.amount(2, 4); ++processes) {
    const std::string several = text("of", processes), again = text("again", processes),
                      one = text("one", processes);
    std::string wrong =
        train(several, processes, batch) + train(again, processes, batch) + train(one, 1, batch * processes);
    if (wrong.empty()) {
      const std::vector<double> a = losses(scene, several), b = losses(scene, one);
      double off = a.size() == b.size() && !a.empty() ? 0 : HUGE_VAL;
      for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
        off = std::max(off, std::abs(a[i] - b[i]) / std::abs(b[i]));
      maximum = std::max(maximum, off);
      if (!(off <= hold)) wrong = text("losses differ by ", off);
      if (weights_hash(run_of(scene, several)) != weights_hash(run_of(scene, again)))
        wrong += " the same run twice has other weights";
    }
    tally.add(text(processes, " processes"), wrong);
  }
  return tally.result(text(" numbers of processes: losses within ", maximum,
                           " of one process with the batch of ", "all, over ", steps,
                           " steps; the same weights twice"));
}

}  // namespace heed::scorecard
