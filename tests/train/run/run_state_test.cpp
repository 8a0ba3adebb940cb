// state.json: every number is checked against its range, the others and the checkpoint.
#include "heed/train/run/run_state.h"

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

/// Behind 6 steps of 2 batches, in the third epoch; the best of three validations was the second.
RunState good() {
  return {.step = 6,
          .epoch = 2,
          .position = 4,
          .tick = 7,
          .validated = 6,
          .best_step = 4,
          .without_better = 1,
          .seconds = 1.5,
          .window_loss = 2.5,
          .window_steps = 2,
          .skipped = 2,
          .skipped_in_a_row = 1,
          .best = Scores{.list = {{"loss", 1.5}}}};
}

RunState read(const std::string& words, int64_t step = 6) {
  return read_run_state(parse_json(words, "state.json"), step, 2);
}

/// The complaint about a state with one number in place of its own.
std::string with(const char* key, const Json& value) {
  Json json = parse_json(to_json(good()), "state.json");
  try {
    read_run_state(json.set(key, value), 6, 2);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::data);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("run state: what is written is read back") {
  CHECK(to_json(read(to_json(good()))) == to_json(good()));
  RunState fresh{.step = 3, .position = 6, .tick = 4};
  CHECK(to_json(read(to_json(fresh), 3)) == to_json(fresh));
}

TEST_CASE("run state: every number is refused at the ends of its type, with its key, value and range") {
  const char* counts[] = {"step",         "epoch",     "position",        "tick",
                          "draws",        "validated", "best_step",       "without_better",
                          "window_steps", "skipped",   "skipped_in_a_row"};
  for (const char* key : counts) {
    CAPTURE(key);
    for (const Json& value :
         {Json(std::numeric_limits<int64_t>::max()), Json(std::numeric_limits<int64_t>::min()), Json(-2),
          Json(1e300), Json("1"), Json(), Json(2.5)}) {
      const std::string complaint = with(key, value);
      CHECK_THAT(complaint, containing(text(key, " is ", value.dump(), ". It must be ")));
    }
  }
  for (const char* key : {"seconds", "window_loss"}) {
    CAPTURE(key);
    for (const Json& value : {Json(), Json("1")}) CHECK_THAT(with(key, value), containing(text(key, " is ")));
  }
  CHECK_THAT(with("seconds", -1), containing("seconds is -1. It must be a finite number from 0 to "));
  CHECK_THAT(with("seconds", 1e308), containing("seconds is 1e+308"));
  CHECK_THAT(with("seconds", std::numeric_limits<int64_t>::max()),
             containing("seconds is 9223372036854775807"));
}

TEST_CASE("run state: a number that contradicts the checkpoint or another is refused") {
  CHECK_THAT(with("step", 5), containing("step is 5. It must be 6, the step of the checkpoint."));
  CHECK_THAT(with("tick", 6), containing("tick is 6. It must be 7, one more than the step."));
  CHECK_THAT(with("position", 13), containing("from 0 to 12, the batches of all steps"));
  CHECK_THAT(with("epoch", 9), containing("from 1 to 8, the batches of all steps before this epoch"));
  CHECK_THAT(with("epoch", 0), containing("from 1 to 8"));
  CHECK_THAT(with("position", 12), containing("epoch is 2. It must be 0, "));
  CHECK_THAT(with("validated", 7), containing("from -1 to 6"));
  CHECK_THAT(with("best_step", 7), containing("from 0 to 6, the step of the last validation"));
  CHECK_THAT(with("without_better", 3), containing("from 0 to 2"));
  CHECK_THAT(with("window_steps", 7), containing("from 0 to 6"));
  CHECK_THAT(with("skipped", 0), containing("skipped_in_a_row is 1. It must be 0"));
  Json none = Json::object();  // without a best
  const Json whole = parse_json(to_json(good()), "state.json");
  for (const auto& [key, value] : whole.members()) {
    if (key != "best" && key != "lower_is_better") none.set(key, value);
  }
  CHECK_THROWS_WITH(read(none.dump()),
                    containing("best_step is 4. It must be 0, since no best is recorded."));
}

TEST_CASE("run state: a step that no run reaches is refused before anything is counted from it") {
  RunState far{.step = 4'000'000'000'000'000'000, .tick = 4'000'000'000'000'000'001};
  CHECK_THROWS_WITH(read(to_json(far), far.step), containing("must be at most 1000000000"));
}
