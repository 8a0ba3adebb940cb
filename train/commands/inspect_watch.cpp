// heed inspect RUN [TEXT] --watch: one head, drawn anew for each checkpoint of a training.
#include "heed/train/commands/inspect_watch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "heed/attention/inspect/map_text.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/train/commands/inspect_modes.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/run/metrics_log.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/run_lock.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

/// The last logged loss at or before a step; empty where there is none.
std::string loss_words(const Path& run, int64_t step) {
  double loss = NAN;
  for (const MetricSeries& one : read_metrics(run / "metrics.jsonl")) {
    for (size_t i = 0; one.name == "loss" && i < one.steps.size(); ++i) {
      if (one.steps[i] <= step) loss = one.values[i];
    }
  }
  return std::isfinite(loss) ? text(", loss ", picture::fixed(loss, 3)) : std::string();
}

}  // namespace

int64_t watch_checkpoints(const Path& run, const std::function<void(int64_t step)>& show,
                          const std::function<bool()>& ended, double seconds) {
  int64_t last = -1, count = 0;
  while (!ended()) {
    // This is asked before the list is read: a training that ends after it has written its last checkpoint.
    const bool in_training = run_holder(run).has_value();
    const std::vector<int64_t> steps = list_checkpoints(run);
    if (!steps.empty() && steps.back() != last) {
      last = steps.back();
      try {
        show(last);
        ++count;
      } catch (const Error& error) {
        const std::vector<int64_t> now = list_checkpoints(run);
        if (std::find(now.begin(), now.end(), last) != now.end()) throw;
      }
      continue;
    }
    if (!in_training) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  if (last < 0 && !ended()) {
    fail("inspect: ", run, " has no checkpoint, and nobody trains it. Start it: ", program_name(), " resume ",
         run, ".");
  }
  return count;
}

int inspect_watch(const ParsedArguments& arguments) {
  if (arguments.has("out") || arguments.has("checkpoint"))
    fail("inspect: --watch shows each checkpoint and writes no file. Leave --out and --checkpoint out.");
  apply_machine(arguments);
  const Path run = arguments.positional[0];
  RunFolder::look(run);
  const std::string input = inspected_text(arguments);
  std::optional<LoadedRun> loaded;
  const StopSignals signals;
  const bool redraws = ::isatty(STDOUT_FILENO) != 0;
  watch_checkpoints(
      run,
      [&](int64_t step) {
        if (!loaded)
          loaded.emplace(load_run(run, {.checkpoint = std::to_string(step), .with_data = needs_data(input)}));
        else
          load(*loaded->model, open_checkpoint(run, std::to_string(step), HeldFiles::all_but_tensors)
                                   .path("model.safetensors"));
        std::string caption;
        std::vector<MapView> maps = map_provider(*loaded->config.task).maps(*loaded->model, input, caption);
        if (maps.empty()) fail("inspect: the attentions of this run have no maps.");
        maps = wanted_maps(maps, arguments);
        const HeadChoice choice = first_head(maps);
        const MapView& map = maps[choice.map];
        if (redraws) io::print_styled("\033[H\033[2J");
        io::print(text("step ", step, loss_words(run, step), "   ", caption, "\n\n"));
        io::print_styled(map_text(map, chosen_head(map, choice.head, arguments), terminal_options()));
        io::print(redraws ? "\n  waiting for the next checkpoint; Ctrl-C ends this\n" : "\n");
        io::flush_output();
      },
      [] { return StopSignals::received() != 0; }, 0.3);
  if (StopSignals::received() == 0) io::print("nobody trains this run any more\n");
  return 0;
}

}  // namespace heed
