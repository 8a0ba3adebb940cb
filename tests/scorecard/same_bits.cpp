// Rows D1 and D2: bit identity of repeated runs, and with any number of threads.
#include "heed/core/io/files.h"
#include "heed/tests/scorecard/rows.h"
#include "heed/tests/scorecard/tiny_runs.h"

namespace heed::scorecard {
namespace {

struct Trained {
  std::string hash, wrong;
  std::vector<std::string> losses;
};

Trained trained(const Scene& scene, const Recipe& recipe, int64_t threads) {
  static int64_t number = 0;
  const std::string name = text("run", number++);
  std::vector<std::string> words{"train",   recipe.preset,      "--name",    name,         "--quiet",
                                 "--steps", text(recipe.steps), "--threads", text(threads)};
  words.insert(words.end(), recipe.less.begin(), recipe.less.end());
  Command command = scene.heed(words);
  command.seconds = 600;
  const Ended end = run(command);
  if (!end.ok()) return {.hash = "", .wrong = end.said(), .losses = {}};
  const Path folder = run_of(scene, name);
  Trained out{.hash = weights_hash(folder), .wrong = "", .losses = loss_lines(folder)};
  io::remove_all(folder);
  return out;
}

std::string difference(const Trained& a, const Trained& b) {
  if (!a.wrong.empty() || !b.wrong.empty()) return a.wrong + b.wrong;
  for (size_t i = 0; i < std::max(a.losses.size(), b.losses.size()); ++i) {
    if (i >= a.losses.size() || i >= b.losses.size()) return "another number of lines";
    if (a.losses[i] != b.losses[i]) return text(a.losses[i], " and ", b.losses[i]);
  }
  if (a.losses.empty()) return "no loss was logged";
  return a.hash == b.hash ? "" : "the same losses, but other weights";
}

/// Each preset with each of these numbers of threads, compared with the first of them.
Result compared(const Scene& scene, const std::vector<int64_t>& threads, const std::string& behind) {
  Tally tally;
  const Recipes presets = recipes(scene, {"translate", "lm", "mnist"}, 2);
  for (const Recipe& recipe : presets.all) {
    const Trained first = trained(scene, recipe, threads.front());
    for (size_t i = 1; i < threads.size(); ++i) {
      tally.add(text(recipe.preset, ", ", threads[i], " threads against ", threads.front()),
                difference(first, trained(scene, recipe, threads[i])));
    }
  }
  return tally.result(text(" pairs of runs (", presets.all.size(), " presets, ",
                           scene.whole ? "2 to 20" : "2", " steps", presets.left_out, ") ", behind));
}

}  // namespace

Result same_seed(const Scene& scene) {
  return compared(scene, {2, 2}, "have the same losses and weights, bit for bit");
}

Result any_threads(const Scene& scene) {
  if (!scene.whole) return compared(scene, {1, 3}, "have the same losses and weights, bit for bit");
  return compared(scene, {1, 2, 3, 4, 8}, "have the same losses and weights, bit for bit");
}

}  // namespace heed::scorecard
