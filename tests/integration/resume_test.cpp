// A run resumed several times, with different numbers of threads, against an uninterrupted one.
#include "heed/core/parallel/thread_pool.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"

using namespace heed;

namespace {

/// Sittings of a few batches each, with another number of threads every time. Returns the last.
TrainResult in_pieces(const Path& run, const std::function<Config()>& config, int64_t batches_per_session) {
  constexpr int counts[] = {2, 1, 4, 3, 8};
  const int before = threads();
  TrainResult outcome;
  int sessions = 0;
  do {
    set_threads(counts[sessions % 5]);
    outcome = train_session(run, config(), batches_per_session);
    REQUIRE(++sessions < 100);
  } while (outcome.stopped_by != 0);
  set_threads(before);
  CHECK(sessions > 2);
  return outcome;
}

/// Checks that both runs have equal checkpoints (but for the clock) and equal logs.
void check_same_run(const Path& one, const Path& other) {
  const std::vector<int64_t> steps = list_checkpoints(one);
  REQUIRE(list_checkpoints(other) == steps);
  for (const int64_t step : steps) {
    CAPTURE(step);
    check_same(one, other, step);
  }
}

std::string lines_without_speed(const Path& run) {
  std::string out;
  const std::string all = io::read(run / "metrics.jsonl");
  for (size_t at = 0; at < all.size();) {
    const size_t end = all.find('\n', at);
    out +=
        all.substr(at, end - at).substr(0, all.substr(at, end - at).find(", \"tokens_per_second\"")) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

TEST_CASE("resume: every preset, with accumulation across epochs, in pieces on other numbers of threads",
          "[slow]") {
  for (const Preset& preset : presets()) {
    CAPTURE(preset.name);
    const auto config = [&] {
      Config made =
          small_preset(preset.name, 8, {{"translate:data.num_examples", 40}, {"lm:data.num_examples", 1500}});
      // Five batches a step end an epoch in the middle of a step; four batches a session stop in one.
      for (const auto& [key, value] : Settings{{"train.grad_accumulation", "5"},
                                               {"train.validate_every", "3"},
                                               {"train.checkpoint_every", "2"},
                                               {"train.keep_checkpoints", "100"},
                                               {"model.dropout", "0.2"},
                                               {"model.attention_dropout", "0.1"}}) {
        made.set(key, value, "");
      }
      return made;
    };
    Scratch scratch;
    const TrainResult whole = train_session(scratch / "whole", config());
    const TrainResult pieces = in_pieces(scratch / "pieces", config, 13);
    CHECK(pieces.step == 8);
    CHECK(pieces.best.list == whole.best.list);
    check_same(scratch / "whole", scratch / "pieces", 8);
    CHECK(lines_without_speed(scratch / "pieces") == lines_without_speed(scratch / "whole"));
    // Checkpoints that both have are the same; a session's end adds one.
    for (const int64_t step : list_checkpoints(scratch / "whole")) {
      CAPTURE(step);
      CHECK((bytes_of(scratch / "whole", step, "optim.safetensors") ==
             bytes_of(scratch / "pieces", step, "optim.safetensors")));
    }
  }
}

TEST_CASE("resume: patience ends a run in pieces where it ends a whole one, with the same best so far") {
  // A rate that rises until it undoes what was learned: the best comes in the middle.
  const auto config = [] {
    return tiny({{"train.max_steps", "400"},
                 {"train.schedule", "constant"},
                 {"train.warmup_steps", "60"},
                 {"train.learning_rate", "0.1"},
                 {"train.grad_clip", "0"},
                 {"train.validate_every", "2"},
                 {"train.patience", "4"},
                 {"train.keep_checkpoints", "1"},
                 {"data.num_examples", "120"}});
  };
  Scratch scratch;
  const TrainResult whole = train_session(scratch / "whole", config());
  CHECK(whole.early);
  REQUIRE(whole.best_step >= 6);
  CHECK(whole.step == whole.best_step + 8);
  for (const int64_t batches : {3, 5, 8}) {
    CAPTURE(batches);
    const Path run = scratch / std::to_string(batches);
    const TrainResult pieces = in_pieces(run, config, batches);
    CHECK(pieces.early);
    CHECK(pieces.step == whole.step);
    CHECK(pieces.best_step == whole.best_step);
    CHECK(pieces.best.list == whole.best.list);
    check_same_run(scratch / "whole", run);  // the best and the last
    CHECK((open_checkpoint(run, "best").file("model.safetensors") ==
           open_checkpoint(scratch / "whole", "best").file("model.safetensors")));
    CHECK(lines_without_speed(run) == lines_without_speed(scratch / "whole"));
    CHECK(train_session(run, config()).step == whole.step);  // and it stays ended
  }
}

TEST_CASE("resume: muon, lion and schedule-free AdamW in pieces, on other numbers of threads") {
  for (const char* optimizer : {"muon", "lion", "schedule_free"}) {
    CAPTURE(optimizer);
    const auto config = [&] {
      Config made = tiny({{"train.schedule", "constant"}, {"train.keep_checkpoints", "100"}});
      made.set("train.optimizer", optimizer, "");
      made.check();
      return made;
    };
    Scratch scratch;
    const TrainResult whole = train_session(scratch / "whole", config());
    const TrainResult pieces = in_pieces(scratch / "pieces", config, 5);
    CHECK(pieces.step == 12);
    CHECK(pieces.best.list == whole.best.list);
    check_same(scratch / "whole", scratch / "pieces", 12);
  }
}

TEST_CASE("resume: from the best so far on other threads, the steps after it come out again") {
  const auto config = [] {
    return tiny({{"train.keep_checkpoints", "100"}, {"train.grad_accumulation", "5"}});
  };
  Scratch scratch;
  train_session(scratch / "whole", config());
  train_session(scratch / "again", config());
  const int before = threads();
  set_threads(before == 3 ? 2 : 3);
  const int64_t best = best_step(scratch / "again").value_or(0);
  REQUIRE(best > 0);
  CHECK(train_session(scratch / "again", config(), -1, "best").step == 12);
  CHECK(train_session(scratch / "again", config(), -1, "3").step == 12);
  set_threads(before);
  check_same_run(scratch / "whole", scratch / "again");
}

TEST_CASE("resume: with products in bf16") {
  const auto config = [] { return tiny({{"train.precision", "bf16"}, {"train.grad_accumulation", "3"}}); };
  Scratch scratch;
  train_session(scratch / "whole", config());
  in_pieces(scratch / "pieces", config, 9);
  check_same_run(scratch / "whole", scratch / "pieces");
}

TEST_CASE("resume: in double precision, and never in another precision than the run's") {
  const auto config = [] { return tiny({{"train.precision", "f64"}}); };
  Scratch scratch;
  train_session(scratch / "whole", config());
  in_pieces(scratch / "pieces", config, 9);
  check_same(scratch / "whole", scratch / "pieces", 12);
  train_session(scratch / "other", config(), 5);
  CHECK(fault_of([&] { train_session(scratch / "other", tiny()); }) == Fault::data);
}
