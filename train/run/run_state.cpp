// Writes and checks state.json.
#include "heed/train/run/run_state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/random.h"
#include "heed/nn/options.h"

namespace heed {
namespace {

constexpr double max_seconds = 1e10;  // 300 years

[[noreturn]] void refuse(const char* key, const Json& value, const std::string& legal) {
  fail(Fault::data, key, " is ", shown(value.dump()), ". It must be ", legal, ".");
}

/// Reads an integer from `low` to `high`. An error ends with `reason`, which explains the bounds.
int64_t read_integer(const Json& json, const char* key, int64_t low, int64_t high, const char* reason) {
  const Json& value = json.at(key);
  if (!value.is_integer() || value.integer() < low || value.integer() > high)
    refuse(key, value,
           text(low == high ? text(low) : text("a whole number from ", low, " to ", high), reason));
  return value.integer();
}

/// Reads a number from `low` to `high`.
double read_real(const Json& json, const char* key, double low, double high) {
  const Json& value = json.at(key);
  if (!value.is_number() || !(value.real() >= low && value.real() <= high))
    refuse(key, value, text("a finite number from ", low, " to ", high));
  return value.real();
}

std::optional<Scores> read_best_scores(const Json& json) {
  const Json* best = json.find("best");
  if (best == nullptr) return std::nullopt;
  Scores scores;
  scores.lower_is_better = json.at("lower_is_better").boolean();
  for (const auto& [name, value] : best->members())
    scores.list.emplace_back(name, value.is_null() ? NAN : value.real());
  return scores;
}

/// Reads epoch and position. The epoch is checked by the number of batches before it, of which each earlier
/// epoch has at least one: a closer check would have to plan all of these epochs.
void read_epoch_and_position(const Json& json, RunState& state, int64_t batches_per_step) {
  const int64_t num_batches = state.step * batches_per_step;
  state.position = read_integer(json, "position", 0, num_batches, ", the batches of all steps");
  const int64_t earlier_batches = num_batches - state.position;
  state.epoch = read_integer(json, "epoch", earlier_batches > 0 ? 1 : 0, earlier_batches,
                             ", the batches of all steps before this epoch");
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

RunState read_run_state(const Json& json, int64_t step, int64_t batches_per_step) {
  constexpr auto steps_of_checkpoint = ", since the checkpoint is of that many steps";
  RunState state{.step = read_integer(json, "step", step, step, ", the step of the checkpoint")};
  if (step > max_integer || batches_per_step > max_integer)
    fail(Fault::data, "step is ", step, ", of ", batches_per_step, " batches. Both must be at most ",
         max_integer, ".");
  read_epoch_and_position(json, state, batches_per_step);
  state.tick = read_integer(json, "tick", step + 1, step + 1, ", one more than the step");
  state.draws = read_integer(json, "draws", 0, max_draws, ", the draws of a step");
  state.validated = read_integer(json, "validated", -1, step, steps_of_checkpoint);
  state.best = read_best_scores(json);
  const int64_t last_validation = state.best ? std::max<int64_t>(state.validated, 0) : 0;
  state.best_step =
      read_integer(json, "best_step", 0, last_validation,
                   state.best ? ", the step of the last validation" : ", since no best is recorded");
  state.without_better = read_integer(json, "without_better", 0, last_validation - state.best_step,
                                      ", the steps since the best validation");
  state.seconds = read_real(json, "seconds", 0, max_seconds);
  if (json.find("window_loss") != nullptr) {
    constexpr double max_loss = std::numeric_limits<double>::max();
    state.window_loss = read_real(json, "window_loss", -max_loss, max_loss);
    state.window_steps = read_integer(json, "window_steps", 0, step, steps_of_checkpoint);
  }
  if (json.find("skipped") != nullptr) {
    state.skipped = read_integer(json, "skipped", 0, step, steps_of_checkpoint);
    state.skipped_in_a_row =
        read_integer(json, "skipped_in_a_row", 0, state.skipped, ", the steps that were skipped at all");
  }
  return state;
}

}  // namespace heed
