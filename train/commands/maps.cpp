// heed maps: the attention maps of many inputs as files.
#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/version.h"
#include "heed/data/text/text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/loaded_run.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/inspect/map_writer.h"
#include "heed/train/loop/progress.h"
#include "heed/train/loop/stop_signals.h"

namespace heed {
namespace {

MapFormat format_asked(const ParsedArguments& arguments) {
  const std::string word = arguments.get("format", "safetensors");
  const std::vector<std::string> known{"safetensors", "npy"};
  if (std::find(known.begin(), known.end(), word) == known.end())
    fail("--format '", word, "' is unknown.", suggestion(word, known));
  return word == "npy" ? MapFormat::npy : MapFormat::safetensors;
}

/// At most so many inputs of a text file (all with 0): a line each, of a line with tabs its first field.
/// Blank lines are none.
std::vector<std::string> inputs_of(const Path& file, int64_t count) {
  const std::string content = io::read_text(file);
  if (const size_t bad = invalid_utf8(content); bad != std::string_view::npos)
    fail(Fault::data, file.string(), ": byte ", bad + 1, " is not UTF-8.");
  std::vector<std::string> out;
  for (const std::string_view line : split_lines(content)) {
    const std::string_view input = line.substr(0, line.find('\t'));
    if (input.find_first_not_of(" \r") == input.npos) continue;
    out.emplace_back(input);
    if (static_cast<int64_t>(out.size()) == count) break;
  }
  if (out.empty()) fail(Fault::data, file.string(), " holds no line of text.");
  return out;
}

/// Writes what comes, and stops behind an example where a signal asks for it.
class MapsUntilAsked {
 public:
  MapsUntilAsked(MapWriter& writer, int64_t total, bool quiet) : writer_(writer), total_(total) {
    progress_.quiet = quiet;
  }

  void take(const MappedExample& example) {
    writer_.add(example);
    if (seconds_now() - shown_at_ >= 10) {
      const double each = (seconds_now() - began_) / static_cast<double>(writer_.count());
      progress_.say("maps", text(writer_.count(), " of ", total_, ", ",
                                 clock_text(each * static_cast<double>(total_ - writer_.count())), " to go"));
      shown_at_ = seconds_now();
    }
    if (const int signal = StopSignals::received(); signal != 0) throw Stopped{signal};
  }

 private:
  MapWriter& writer_;
  int64_t total_;
  Progress progress_;
  double began_ = seconds_now(), shown_at_ = began_;
};

int run_maps(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const MapFormat format = format_asked(arguments);
  if (!arguments.has("out")) fail("maps: where do the files go? Add --out FOLDER.");
  const int64_t count = arguments.integer("count", 0);
  if (arguments.has("count") && count < 1) fail("--count = ", count, ". It must be at least 1.");
  const std::string data = arguments.get("data");
  std::vector<std::string> lines;
  if (!data.empty()) lines = inputs_of(find_data(data), count);
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), "", lines.empty());
  const Task& task = *run.config.task;
  const int64_t examples = lines.empty() ? task.test_examples() : 0;  // without lines the data is loaded
  if (lines.empty() && examples == 0)
    fail("maps: the task ", run.config.task_name,
         " gives no test examples by number. Give inputs: --data FILE.");
  const int64_t total =
      lines.empty() ? (count > 0 ? std::min(count, examples) : examples) : static_cast<int64_t>(lines.size());
  const StopSignals signals;
  MapWriter writer(Path(arguments.get("out")), format,
                   Json::object({{"heed", HEED_VERSION},
                                 {"run", run.folder.path().string()},
                                 {"checkpoint", run.checkpoint.step},
                                 {"task", run.config.task_name},
                                 {"data", data.empty() ? std::string("the run's test examples") : data}}));
  MapsUntilAsked maps(writer, total, arguments.has("quiet"));
  const auto take = [&](const MappedExample& one) { maps.take(one); };
  std::optional<Stopped> stopped;
  try {
    if (lines.empty())
      for_each_mapped_example(task, *run.model, {.examples = count}, take);
    else
      for_each_mapped_line(task, *run.model, lines, take);
  } catch (const Stopped& signal) {
    stopped = signal;
  } catch (...) {
    writer.finish(false);  // what was written is listed
    throw;
  }
  writer.finish(!stopped);
  io::printf("%lld of %lld examples, listed in %s\n", static_cast<long long>(writer.count()),
             static_cast<long long>(total), (Path(arguments.get("out")) / "manifest.json").c_str());
  return stopped ? exit_code(*stopped) : 0;
}

}  // namespace

Command command::maps() {
  return {
      "maps",
      "write the attention maps of many inputs as files, with a manifest",
      "RUN",
      "the folder of a run",
      1,
      1,
      with_machine(
          {{"data", "FILE",
            "an input a line (of a line with tabs, the first field), gzip or not; a translator's own "
            "translation is what its decoder reads (default: the run's test examples, with their targets)"},
           {"count", "N", "the first so many (default: all)"},
           {"out", "FOLDER", "where the files go; required, without maps in it"},
           {"format", "WORD", "safetensors: a file an example; npy: a file a map (default: safetensors)"},
           {"checkpoint", "WHICH", "best, last or a step (default: best)"},
           {"quiet", "", "print no progress"}}),
      false,
      run_maps};
}

}  // namespace heed
