// The loop over test examples with their maps: every task, batching, and the bits of a loss.
#include "heed/train/inspect/map_source.h"

#include <set>

#include "heed/core/error.h"
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/example_provider.h"

using namespace heed;

namespace {

Config small(const std::string& task, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Config config = make_config(task);
  std::vector<std::pair<std::string, std::string>> settings{
      {"model.d_model", "16"}, {"model.heads", "2"}, {"model.d_ff", "16"}, {"model.layers", "2"}};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.task->load(config, {}, [](const std::string&) {});
  return config;
}

Config translate() {
  return small("translate", {{"data.num_examples", "300"},
                             {"data.validation", "10"},
                             {"data.test_size", "30"},
                             {"model.max_length", "40"}});
}

std::unique_ptr<Module> model_of(const Config& config) {
  Rng rng(3);
  return new_model(config, rng);
}

std::vector<MappedExample> mapped(const Config& config, Module& model, const MapSourceOptions& options) {
  std::vector<MappedExample> out;
  CHECK(for_each_mapped_example(*config.task, model, options, [&](const MappedExample& one) {
          for (const MapView& map : one.maps) check(map);
          out.push_back(one);
        }) > 0);
  return out;
}

}  // namespace

TEST_CASE("map source: translation gives each test pair once, with the tokens of every kind of attention") {
  const Config config = translate();
  const auto model = model_of(config);
  const auto all = mapped(config, *model, {});
  REQUIRE(all.size() == 30);
  std::set<int64_t> numbers;
  for (const MappedExample& one : all) {
    numbers.insert(one.number);
    REQUIRE(one.maps.size() == 6);
    CHECK(one.maps[0].kind == "encoder self");
    CHECK(one.maps[1].layer == 1);
    CHECK(one.maps[2].kind == "decoder self");
    CHECK(one.maps[3].kind == "cross");
    CHECK(one.maps[0].query_tokens.front() == "[SOS]");
    CHECK(one.maps[2].key_tokens.front() == "[SOS]");   // what is read
    CHECK(one.maps[3].query_tokens.back() == "[EOS]");  // what is written
    CHECK(one.maps[3].key_tokens == one.maps[0].key_tokens);
    for (const MapView& map : one.maps) {
      for (int64_t query = 0; query < map.queries; ++query) {
        double sum = 0;
        for (int64_t key = 0; key < map.keys; ++key) sum += map.at(0, query, key);
        CHECK(sum == Approx(1).margin(1e-5));  // a padded row or column would leave some of it out
      }
    }
  }
  CHECK(numbers.size() == 30);
}

TEST_CASE("map source: maps do not depend on how many examples are in memory at once") {
  const Config config = translate();
  const auto model = model_of(config);
  const auto together = mapped(config, *model, {}), alone = mapped(config, *model, {.max_bytes = 1});
  REQUIRE(together.size() == alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    CHECK(together[i].number == alone[i].number);
    CHECK(together[i].caption == alone[i].caption);
    for (size_t map = 0; map < alone[i].maps.size(); ++map) {
      const std::vector<float>&one = together[i].maps[map].weights, &other = alone[i].maps[map].weights;
      REQUIRE(one.size() == other.size());
      double worst = 0;
      for (size_t w = 0; w < one.size(); ++w) worst = std::max<double>(worst, std::abs(one[w] - other[w]));
      CHECK(worst < 1e-6);
    }
  }
}

TEST_CASE(
    "map source: losses of examples add up to the loss of the batch, whose bits recording leaves alone") {
  const auto task = GENERATE(values<std::string>({"translate", "lm", "mnist", "recall", "lra-text"}));
  CAPTURE(task);
  const Config config =
      task == "translate" ? translate()
      : task == "lm"      ? small("lm", {{"data.num_examples", "4000"}, {"model.max_length", "16"}})
      : task == "mnist"
          ? small("mnist", {{"data.num_examples", "40"}, {"data.test_size", "12"}, {"model.patch", "14"}})
      : task == "recall" ? small("recall", {{"data.test_size", "12"}})
                         : small("lra-text", {{"data.num_examples", "20"},
                                              {"data.validation", "4"},
                                              {"data.test_size", "4"},
                                              {"model.max_length", "40"}});
  const auto model = model_of(config);
  const std::vector<int64_t> numbers{3, 0, 2};
  const ExampleBatch examples = example_provider(*config.task).test_batch(numbers, 0);
  REQUIRE(examples.rows.size() == 3);
  CHECK(examples.rows[0].number == 3);
  const auto scores = example_provider(*config.task).example_scores(*model, examples, {});
  double loss = 0, targets = 0;
  for (const ExampleScore& score : scores) {
    loss += score.loss;
    targets += score.targets;
  }
  const NoGrad no_grad;
  const float plain = config.task->loss(*model, examples.batch, {}).item();
  CHECK(loss / targets == Approx(plain).epsilon(1e-5));
  MapRecorder recorder;
  CHECK(config.task->loss(*model, examples.batch, {.recorder = &recorder}).item() == plain);
  CHECK(!recorder.maps.empty());
}

TEST_CASE("map source: windows, images, sequences and pairs of documents, cut where asked") {
  const Config lm = small("lm", {{"data.num_examples", "4000"}, {"model.max_length", "16"}});
  const auto windows = mapped(lm, *model_of(lm), {.examples = 5, .max_tokens = 8});
  REQUIRE(windows.size() == 5);
  CHECK(windows[4].number == 4);
  CHECK(windows[0].maps[0].keys == 8);
  CHECK(windows[0].maps[0].kind == "decoder self");
  const Config pairs = small(
      "lra-retrieval", {{"data.num_examples", "20"}, {"data.validation", "4"}, {"data.test_size", "4"}});
  const auto documents = mapped(pairs, *model_of(pairs), {.examples = 2, .max_tokens = 12});
  REQUIRE(documents.size() == 4);  // both documents of two pairs
  for (const MappedExample& one : documents) CHECK(one.maps[0].keys <= 12);
}

TEST_CASE("map source: lines of text are mapped as heed inspect maps them") {
  const Config config = translate();
  const auto model = model_of(config);
  const MappedLines lines{.texts = {"The old man smiles.", "I read a book."}};
  std::vector<MappedExample> out;
  CHECK(for_each_mapped_line(*config.task, *model, lines,
                             [&](const MappedExample& one) { out.push_back(one); }) == 2);
  CHECK(out[1].number == 1);
  CHECK(out[1].caption.find("I read a book.") == 0);
}

TEST_CASE("map source: places of attentions by their names") {
  CHECK(place_of("decoder.blocks.11.cross").name() == "cross.11");
  CHECK(place_of("decoder.blocks.2.attention").name() == "decoder.2");
  CHECK(place_of("encoder.blocks.0.attention").kind == "encoder self");
  CHECK(place_of("decoder.cross").name() == "cross.0");
}
