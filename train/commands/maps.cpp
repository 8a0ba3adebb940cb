// heed maps: writes the attention maps of many inputs as files.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/version.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/inspect/map_writer.h"
#include "heed/train/loop/stop_signals.h"
#include "heed/train/progress/progress.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/session/run_inputs.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/find_data.h"

namespace heed {
namespace {

/// Writes the maps of examples one by one; throws Stopped after an example where a signal has arrived.
class StoppableMapWriter {
 public:
  StoppableMapWriter(MapWriter& writer, int64_t total) : writer_(writer), work_(static_cast<double>(total)) {}

  void take(const MappedExample& example) {
    writer_.add(example);
    next();
  }

  /// Records an input that is left out.
  void skip(const Error& why) {
    writer_.leave_out(why.what());
    next();
  }

 private:
  void next() {
    work_.add();
    if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
  }

  MapWriter& writer_;
  CountedWork work_;
};

int run_maps(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const bool npy = arguments.word("format", {"safetensors", "npy"}, "safetensors") == "npy";
  if (!arguments.has("out")) fail("maps: where do the files go? Add --out FOLDER.");
  const int64_t count = arguments.integer("count", 0, 1);
  const std::string data = arguments.get("data");
  MappedLines lines;
  if (!data.empty()) lines = lines_of_file(find_data(data), "--data", count, "\t");
  const bool by_line = !data.empty();
  LoadedRun run =
      load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"), .with_data = !by_line});
  const Task& task = *run.config.task;
  const int64_t examples = by_line ? 0 : num_test_examples(task);  // without lines the data is loaded
  if (!by_line && examples == 0)
    fail("maps: the task ", run.config.task_name,
         " gives no test examples by number. Give inputs: --data FILE.");
  const int64_t total = by_line     ? static_cast<int64_t>(lines.texts.size())
                        : count > 0 ? std::min(count, examples)
                                    : examples;
  const StopSignals signals;
  MapWriter writer(Path(arguments.get("out")), npy ? MapFormat::npy : MapFormat::safetensors,
                   Json::object({{"heed", HEED_VERSION},
                                 {"run", run.folder.path().string()},
                                 {"checkpoint", run.checkpoint.step},
                                 {"task", run.config.task_name},
                                 {"data", data.empty() ? std::string("the run's test examples") : data}}));
  std::optional<Stopped> stopped;
  try {
    Progress progress;
    progress.quiet = arguments.has("quiet");
    const ProgressScope shown(progress, "maps");
    StoppableMapWriter maps(writer, total);
    const auto take = [&](const MappedExample& one) { maps.take(one); };
    if (by_line)
      for_each_mapped_line(task, *run.model, lines, take, [&](const Error& why) { maps.skip(why); });
    else
      for_each_mapped_example(task, *run.model, {.examples = count}, take);
  } catch (const Stopped& signal) {
    stopped = signal;
  } catch (...) {
    writer.finish(false);  // what was written is listed
    throw;
  }
  writer.finish(!stopped);
  const std::vector<std::string>& left_out = writer.left_out();
  if (writer.count() == 0 && !left_out.empty())
    fail(Fault::data, "maps: none of the ", total, " inputs can be read. The first: ", left_out.front());
  if (!left_out.empty()) {
    io::print_error(text("warning: ", left_out.size(), left_out.size() == 1 ? " input is" : " inputs are",
                         " left out, listed in the manifest. The first: ", left_out.front(), "\n"));
  }
  io::printf("%lld of %lld examples, listed in %s\n", static_cast<long long>(writer.count()),
             static_cast<long long>(total), (Path(arguments.get("out")) / "manifest.json").c_str());
  return stopped ? exit_code(*stopped) : 0;
}

}  // namespace

Command command::maps() {
  return {.name = "maps",
          .about = "write the attention maps of many inputs as files, with a manifest",
          .positional = "RUN",
          .positional_help = "the folder of a run",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(
              {{"data", "FILE",
                "an input a line (of a line with tabs, the first field), gzip or not; one that the model "
                "cannot read is left out; a translator's own translation is what its decoder reads (default: "
                "the run's test examples, with their targets)"},
               {"count", "N", "the first so many (default: all)"},
               {"out", "FOLDER", "where the files go; required, without maps in it"},
               {"format", "WORD", "safetensors: a file an example; npy: a file a map (default: safetensors)"},
               checkpoint_option,
               {"quiet", "", "print no progress"}}),
          .run = run_maps};
}

}  // namespace heed
