// Packed recall: well-formed sequences, and training that separates attention from averaging.
#include <map>
#include <set>

#include "heed/tests/catch.h"
#include "heed/tests/train/score_after_training.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

using namespace heed;

namespace {

Config recall(const std::vector<std::pair<std::string, std::string>>& settings) {
  Config config = make_config("recall");
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  return config;
}

double accuracy_after_training(const std::string& attention, const std::string& causal) {
  Config config = recall({{"attention.encoder", attention}, {"data.causal", causal}});
  config.task->load(config, {}, [](const std::string&) {});
  return score_after_training(std::move(config));
}

}  // namespace

TEST_CASE("recall: keys differ, the question is about one of them, and its value is the label") {
  Config config = recall({{"train.batch_size", "200"}});
  config.task->load(config, {}, [](const std::string&) {});
  config.task->plan(0);
  std::map<int64_t, int64_t> answers, places;
  std::set<std::vector<double>> sequences;
  for (int64_t b = 0; b < 5; ++b) {
    const Batch batch = config.task->batch(b);
    REQUIRE(batch.tensors[0].shape() == Shape{200, 9});
    const std::vector<double> ids = batch.tensors[0].to_doubles(), labels = batch.tensors[1].to_doubles();
    for (int64_t row = 0; row < 200; ++row) {
      const std::vector<double> sequence(ids.begin() + row * 9, ids.begin() + row * 9 + 9);
      sequences.insert(sequence);
      std::map<int64_t, int64_t> value_of, place_of;
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t pair = static_cast<int64_t>(sequence[static_cast<size_t>(i)]) - 13;
        REQUIRE(pair >= 0);
        REQUIRE(pair < 144);
        CHECK(value_of.emplace(pair / 12, pair % 12).second);  // no key twice
        place_of[pair / 12] = i;
      }
      const int64_t key = static_cast<int64_t>(sequence[8]) - 1;
      REQUIRE(value_of.contains(key));
      CHECK(value_of[key] == static_cast<int64_t>(labels[static_cast<size_t>(row)]));
      ++answers[value_of[key]];
      ++places[place_of[key]];
    }
  }
  CHECK(sequences.size() == 1000);
  CHECK(answers.size() == 12);
  CHECK(places.size() == 8);
  for (const auto& [place, count] : places) CHECK(count > 80);  // 1000 in 8 places: 125 each, deviation 10
}

TEST_CASE("recall: what cannot be is refused") {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"data.items", "13"}, {"data.items", "0"}, {"data.values", "1"}, {"model.max_length", "8"}}) {
    CAPTURE(key, value);
    const auto load = [&key = key, &value = value] {
      Config config = recall({{key, value}});
      config.task->load(config, {}, [](const std::string&) {});
    };
    CHECK_THROWS_WITH(load(), Catch::Matchers::Contains(key + " = " + value));
  }
  // Before any model is built: what makes it work is named.
  CHECK_THROWS_WITH(recall({{"attention.encoder", "delta"}}), Catch::Matchers::Contains("Add --causal true"));
  CHECK_NOTHROW(recall({{"attention.encoder", "delta"}, {"data.causal", "true"}}));
}

TEST_CASE("recall: softmax finds its pair after 300 steps, and an average of all values does not", "[slow]") {
  CHECK(accuracy_after_training("softmax", "false") >= 0.97);
  CHECK(accuracy_after_training("softmax", "true") >= 0.97);
  CHECK(accuracy_after_training("fastmax:p=0", "false") < 0.45);
}
