// Patience, the best scores and the time limit.
#include "heed/train/loop/early_stopping.h"

#include <cmath>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

Scores loss(double value) { return {.list = {{"loss", value}}}; }

}  // namespace

TEST_CASE("early stopping: patience counts validations since the best one") {
  TrainOptions options;
  options.patience = 2;
  RunState state;
  EarlyStopping stopping(options, 100, state);
  const auto validated = [&](int64_t step, double value) {
    state.step = step;
    stopping.update_best(loss(value));
    return stopping.patience_exhausted();
  };
  CHECK(!validated(10, 3));
  CHECK(!validated(20, 3));  // as good is not better
  CHECK(!validated(30, 2));  // better: it counts anew
  CHECK(state.best_step == 30);
  CHECK(state.best->first() == 2);
  CHECK(state.without_better == 0);
  CHECK(!validated(40, NAN));
  CHECK(validated(50, 2.5));
  CHECK(state.best_step == 30);
  CHECK(state.validated == 50);
  options.patience = 0;  // never
  CHECK(!stopping.patience_exhausted());
}

TEST_CASE("early stopping: a score is reached from the side that is better") {
  TrainOptions options;
  RunState state;
  EarlyStopping stopping(options, 100, state);
  state.step = 10;
  stopping.update_best(loss(3));
  CHECK_FALSE(stopping.score_reached());  // 0: never
  options.stop_score = 2;
  CHECK_FALSE(stopping.score_reached());
  stopping.update_best(loss(2));
  CHECK(stopping.score_reached());
  RunState other;
  EarlyStopping accurate(options, 100, other);
  options.stop_score = 0.9;
  CHECK_FALSE(accurate.score_reached());  // nothing was validated
  accurate.update_best({.list = {{"accuracy", 0.8}}, .lower_is_better = false});
  CHECK_FALSE(accurate.score_reached());
  accurate.update_best({.list = {{"accuracy", 0.95}}, .lower_is_better = false});
  CHECK(accurate.score_reached());
}

TEST_CASE("early stopping: of equal accuracies the one of the lower loss is the best, then the earliest") {
  TrainOptions options;
  options.patience = 2;
  RunState state;
  const auto validated = [&](int64_t step, double accuracy, std::optional<double> loss) {
    Scores scores{.list = {{"accuracy", accuracy}}, .lower_is_better = false};
    if (loss) scores.list.emplace_back("loss", *loss);
    state.step = step;
    EarlyStopping(options, 1000, state).update_best(scores);
    // A resumed run knows what the file has.
    RunState kept = state;
    kept.tick = step + 1;
    kept.position = step;
    state = read_run_state(parse_json(to_json(kept), "state.json"), step, 1);
    return state.best_step;
  };
  CHECK(validated(10, 0.5, 2) == 10);
  CHECK(validated(20, 0.5, 1.75) == 20);  // lower: better, and patience counts anew
  CHECK(state.without_better == 0);
  CHECK(validated(30, 0.5, 1.75) == 20);
  CHECK(validated(40, 0.5, NAN) == 20);
  CHECK(state.without_better == 2);
  CHECK(validated(50, 0.25, 0.5) == 20);  // accuracy comes first
  CHECK(validated(60, 0.75, 9) == 60);
  CHECK(validated(70, 0.75, std::nullopt) == 60);  // nothing decides
  CHECK(validated(80, 0.8, std::nullopt) == 80);
  CHECK(validated(90, 0.8, 1) == 80);  // a run that kept no loss with its best
  CHECK(validated(100, 0.9, NAN) == 100);
  CHECK(validated(110, 0.9, 3) == 100);
}

TEST_CASE("early stopping: no validation is the best before the share of the steps that best_after names") {
  TrainOptions options;
  options.best_after = GENERATE(0.2, 1.0);
  RunState state;
  EarlyStopping stopping(options, 100, state);
  const auto validated = [&](int64_t step, double value) {
    state.step = step;
    stopping.update_best(loss(value));
  };
  validated(10, 1);
  validated(20, 1);
  CHECK(!state.best);
  CHECK(state.validated == 20);
  validated(30, 3);
  validated(40, 4);
  CHECK(state.best_step == (options.best_after < 1 ? 30 : 0));
  validated(100, 5);  // the last one is always there to choose
  CHECK(state.best_step == (options.best_after < 1 ? 30 : 100));
}

TEST_CASE("early stopping: a time limit of 0 is none") {
  TrainOptions options;
  RunState state;
  const EarlyStopping stopping(options, 100, state);
  options.time_limit = 0;
  CHECK(!stopping.out_of_time(1e9));
  options.time_limit = 60;
  CHECK(!stopping.out_of_time(59.9));
  CHECK(stopping.out_of_time(60));
}
