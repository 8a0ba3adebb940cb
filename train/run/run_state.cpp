// Writes and checks state.json.
#include "heed/train/run/run_state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/nn/options.h"

namespace heed {
namespace {

constexpr int64_t max_draws = (int64_t{1} << 24) - 1;  // per step: see Draw::high
constexpr double max_seconds = 1e10;                   // 300 years

[[noreturn]] void refuse(const char* key, const Json& value, const std::string& legal) {
  fail(Fault::data, key, " is ", shown(value.dump()), ". It must be ", legal, ".");
}

/// An integer from `low` to `high`; `why` explains the bounds.
int64_t whole(const Json& json, const char* key, int64_t low, int64_t high, const char* why) {
  const Json& value = json.at(key);
  const auto range = [&] {
    return low == high ? text(low) : text("a whole number from ", low, " to ", high);
  };
  if (!value.is_integer() || value.integer() < low || value.integer() > high)
    refuse(key, value, text(range(), why));
  return value.integer();
}

double real(const Json& json, const char* key, double low, double high) {
  const Json& value = json.at(key);
  if (!value.is_number() || !(value.real() >= low && value.real() <= high))
    refuse(key, value, text("a finite number from ", low, " to ", high));
  return value.real();
}

std::optional<Scores> read_best(const Json& json) {
  const Json* best = json.find("best");
  if (best == nullptr) return std::nullopt;
  Scores scores;
  scores.lower_is_better = json.at("lower_is_better").boolean();
  for (const auto& [name, value] : best->members())
    scores.list.emplace_back(name, value.is_null() ? NAN : value.real());
  return scores;
}

/// Reads epoch and position. The epoch can only be checked roughly without planning all epochs before it:
/// each has at least one batch, and the first starts at position 0.
void read_place(const Json& json, RunState& state, int64_t batches_a_step) {
  const int64_t batches = state.step * batches_a_step;
  state.position = whole(json, "position", 0, batches, ", the batches of all steps");
  const int64_t before = batches - state.position;
  state.epoch =
      whole(json, "epoch", before > 0 ? 1 : 0, before, ", the batches of all steps before this epoch");
}

}  // namespace

std::string to_json(const RunState& state) {
  Json json = Json::object({{"step", state.step},
                            {"epoch", state.epoch},
                            {"position", state.position},
                            {"tick", state.tick},
                            {"draws", state.draws},
                            {"validated", state.validated},
                            {"best_step", state.best_step},
                            {"without_better", state.without_better},
                            {"seconds", state.seconds},
                            {"window_loss", state.window_loss},
                            {"window_steps", state.window_steps}});
  if (state.skipped > 0) {
    json.set("skipped", state.skipped);
    json.set("skipped_in_a_row", state.skipped_in_a_row);
  }
  if (state.best) {
    json.set("lower_is_better", state.best->lower_is_better);
    Json list = Json::object();
    for (const auto& [name, value] : state.best->list) list.set(name, value);
    json.set("best", list);
  }
  return json.dump(1) + "\n";
}

RunState read_run_state(const Json& json, int64_t step, int64_t batches_a_step) {
  constexpr auto of_step = ", since the checkpoint is of that many steps";
  RunState state{.step = whole(json, "step", step, step, ", the step of the checkpoint")};
  if (step > max_integer || batches_a_step > max_integer)
    fail(Fault::data, "step is ", step, ", of ", batches_a_step, " batches. Both must be at most ",
         max_integer, ".");
  read_place(json, state, batches_a_step);
  state.tick = whole(json, "tick", step + 1, step + 1, ", one more than the step");
  state.draws = whole(json, "draws", 0, max_draws, ", the draws of a step");
  state.validated = whole(json, "validated", -1, step, of_step);
  state.best = read_best(json);
  const int64_t latest = state.best ? std::max<int64_t>(state.validated, 0) : 0;
  state.best_step = whole(json, "best_step", 0, latest,
                          state.best ? ", the step of the last validation" : ", since no best is recorded");
  state.without_better =
      whole(json, "without_better", 0, latest - state.best_step, ", the steps since the best validation");
  state.seconds = real(json, "seconds", 0, max_seconds);
  if (json.find("window_loss") != nullptr) {
    constexpr double any = std::numeric_limits<double>::max();
    state.window_loss = real(json, "window_loss", -any, any);
    state.window_steps = whole(json, "window_steps", 0, step, of_step);
  }
  if (json.find("skipped") != nullptr) {
    state.skipped = whole(json, "skipped", 0, step, of_step);
    state.skipped_in_a_row =
        whole(json, "skipped_in_a_row", 0, state.skipped, ", the steps that were skipped at all");
  }
  return state;
}

}  // namespace heed
