// Each task counts what it scores, to the end.
#include <algorithm>

#include "heed/autograd/tape.h"
#include "heed/core/counted_work.h"
#include "heed/tests/catch.h"
#include "heed/tests/work_shares.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

using namespace heed;

TEST_CASE("counted scoring: validation and test of every task count to their ends") {
  const std::string name =
      GENERATE("translate", "lm", "mnist", "recall", "lra-listops", "lra-text", "lra-image");
  CAPTURE(name);
  Config config = make_config(name);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"model.d_model", "8"}, {"model.heads", "2"}, {"model.layers", "1"}})
    config.set(key, value, "");
  for (const auto& [key, value] : config.task->small_data())
    config.set("data." + key, std::to_string(value), "");
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(5);
  const auto model = new_model(config, rng);
  const NoGrad no_grad;
  for (const bool validates : {true, false}) {
    CAPTURE(validates);
    const std::vector<double> shares = shares_of([&] {
      if (validates)
        config.task->validate(*model);
      else
        config.task->test(*model, config.decode);
    });
    REQUIRE(!shares.empty());
    CHECK(*std::max_element(shares.begin(), shares.end()) == 1);
    CHECK(*std::min_element(shares.begin(), shares.end()) > 0);
  }
}
