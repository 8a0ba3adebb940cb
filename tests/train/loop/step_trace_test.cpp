// A Chrome trace of training steps: what is in it, that slices nest, and that tracing changes no number.
#include "heed/train/loop/step_trace.h"

#include <algorithm>
#include <map>

#include "heed/core/io/json.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// Trains `steps` steps with a trace; gives what finish() says.
std::string traced(const Path& run, const Path& file, const char* steps) {
  Config config = tiny({{"train.max_steps", steps}});
  config.task->load(config, {}, [](const std::string&) {});
  RunFolder folder = RunFolder::create({.out = run.parent_path(), .name = run.filename().string()});
  Progress progress;
  progress.quiet = true;
  StepTrace trace(file);
  Trainer trainer(config, folder, std::nullopt, progress, single_process(), {&trace});
  trainer.run();
  return trace.finish(trainer.model());
}

struct Slice {
  double begin, end;
};

/// Do slices of a thread lie beside or inside each other? Times are written in microseconds of 3 digits.
bool nest(std::vector<Slice> slices) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<double> open;
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back() <= slice.begin + 1e-3) open.pop_back();
    if (!open.empty() && slice.end > open.back() + 1e-3) return false;
    open.push_back(slice.end);
  }
  return true;
}

}  // namespace

TEST_CASE("step trace: steps 2 to 4 with their modules, ops, gradients and memory") {
  const Scratch scratch;
  const Path file = scratch / "trace.json";
  const std::string said = traced(scratch / "run", file, "6");
  CHECK_THAT(said, containing("trace.json: 3 steps, "));
  CHECK(Timeline::active() == nullptr);

  const Json trace = parse_json(io::read(file), "trace");
  std::map<std::string, int> kinds, names;
  std::map<int64_t, std::vector<Slice>> threads;
  for (const Json& event : trace.at("traceEvents").list()) {
    const std::string phase = event.at("ph").text();
    if (phase == "M") continue;
    ++kinds[event.at("cat").text()];
    ++names[event.at("name").text()];
    if (phase == "C") {
      CHECK(event.at("args").at("MiB").real() > 0);
      continue;
    }
    REQUIRE(phase == "X");
    const double begin = event.at("ts").real(), duration = event.at("dur").real();
    CHECK(begin >= 0);
    CHECK(duration >= 0);
    threads[event.at("tid").integer()].push_back({begin, begin + duration});
  }
  CHECK(names["step"] == 3);
  CHECK(names["update"] == 3);
  CHECK(names["forward and backward"] == 3);
  for (const char* kind : {"module", "op", "gradient", "memory"}) {
    CAPTURE(kind);
    CHECK(kinds[kind] > 30);
  }
  CHECK(std::any_of(names.begin(), names.end(),
                    [](const auto& one) { return one.first.starts_with("encoder.blocks.0."); }));
  for (const auto& [thread, slices] : threads) CHECK(nest(slices));

  // A run without a trace has equal numbers.
  train_session(scratch / "plain", tiny({{"train.max_steps", "6"}}));
  CHECK(metrics_of(scratch / "run") == metrics_of(scratch / "plain"));
}

TEST_CASE("step trace: a shorter session is written at its end, and what is missing is said") {
  const Scratch scratch;
  CHECK_THAT(traced(scratch / "two", scratch / "two.json", "2"), containing("1 step, "));
  CHECK_THAT(io::read(scratch / "two.json"), containing("\"traceEvents\""));
  CHECK_THAT(traced(scratch / "one", scratch / "one.json", "1"), containing("nothing is recorded"));
  CHECK(!io::exists(scratch / "one.json"));
  CHECK_THAT(traced(scratch / "nowhere", scratch / "no/where.json", "5"), containing("where.json"));
  CHECK(Timeline::active() == nullptr);
}
