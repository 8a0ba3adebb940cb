// Tasks over pictures: patches as tokens, their places, their maps, and what does not go with them.
#include "heed/train/tasks/lra/pictures.h"

#include <cmath>

#include "heed/attention/inspect/map_view.h"
#include "heed/autograd/tape.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Config loaded(const std::string& preset, const Settings& settings) {
  Config config = small_preset(preset);
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  config.task->load(config, {}, [](const std::string&) {});
  config.task->plan(0);
  return config;
}

}  // namespace

TEST_CASE("pictures: a patch is the vector of its pixels, standardised, and patches stand row by row") {
  const std::string preset = GENERATE("lra-pathfinder-best", "lra-image-best");
  const Settings eight{{"data.side", "8"}, {"model.max_length", "64"}, {"model.pool", "mean"}};
  Settings in_patches = eight;
  in_patches.emplace_back("model.patch", "4");
  const Config pixels = loaded(preset, eight), patches = loaded(preset, in_patches);
  const bool drawn = preset == "lra-pathfinder-best";
  const double mean = drawn ? 28 : 122, deviation = drawn ? 58 : 61;
  CHECK(patches.task->tensor_names() == std::vector<std::string>{"patches", "targets"});
  const Batch one = pixels.task->batch(0), other = patches.task->batch(0);
  const int64_t images = one.tensors[0].extent(0);
  REQUIRE(other.tensors[0].shape() == Shape{images, 4, 16});
  CHECK(other.tensors[1].to_doubles() == one.tensors[1].to_doubles());
  CHECK(other.tokens == images * 4);
  const std::vector<double> ids = one.tensors[0].to_doubles(), values = other.tensors[0].to_doubles();
  size_t lit = 0;
  for (size_t image = 0; image < static_cast<size_t>(images); ++image) {
    for (size_t row = 0; row < 8; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        const size_t patch = row / 4 * 2 + column / 4, within = row % 4 * 4 + column % 4;
        const double id = ids[image * 64 + row * 8 + column];
        CHECK(std::abs(values[(image * 4 + patch) * 16 + within] - (id - mean) / deviation) < 1e-6);
        lit += id > 0 ? 1 : 0;
      }
    }
  }
  CHECK(lit > 0);
}

TEST_CASE("pictures: maps and test examples of patches name their rows and columns and show the picture") {
  const std::string pool = GENERATE("mean", "first");
  const int64_t first = pool == "first" ? 1 : 0;
  Config config =
      loaded("lra-pathfinder-best",
             {{"data.side", "8"}, {"model.max_length", "17"}, {"model.pool", pool}, {"model.patch", "2"}});
  Rng rng(1);
  const std::unique_ptr<Module> model = config.task->model(config, rng);
  std::string caption;
  const std::vector<MapView> maps = map_provider(*config.task).maps(*model, "3", caption);
  CHECK_THAT(caption, containing("test example 3"));
  REQUIRE(!maps.empty());
  const MapView& map = maps[0];
  CHECK(map.queries == 16 + first);
  REQUIRE(map.picture);
  CHECK(map.picture->patch == 2);
  CHECK(map.picture->first == first);
  CHECK(map.picture->tokens() == map.queries);
  const std::vector<int64_t> three{3};
  const ExampleBatch examples = example_provider(*config.task).test_batch(three, 0);
  REQUIRE(examples.rows[0].input.size() == static_cast<size_t>(16 + first));
  CHECK(examples.rows[0].input[static_cast<size_t>(5 + first)] == "1,1");
  const ExampleBatch cut = example_provider(*config.task).test_batch(three, 5);
  CHECK(cut.batch.tensors[0].shape() == Shape{1, 5, 4});
  CHECK(cut.rows[0].input.size() == static_cast<size_t>(5 + first));
  CHECK(example_provider(*config.task).test_lengths(3, 0) == std::vector<int64_t>{16});
  // The picture is row by row, as a map of pixels shows it.
  Config pixels = loaded("lra-pathfinder-best", {{"data.side", "8"}, {"model.max_length", "64"}});
  const std::unique_ptr<Module> other = pixels.task->model(pixels, rng);
  CHECK(map_provider(*pixels.task).maps(*other, "3", caption)[0].picture->pixels == map.picture->pixels);
}

TEST_CASE("pictures: patches give a loss with gradients, and scores") {
  Config config =
      loaded("lra-image-best", {{"data.side", "8"}, {"model.max_length", "4"}, {"model.patch", "4"}});
  Rng rng(1);
  const std::unique_ptr<Module> model = config.task->model(config, rng);
  const Tensor loss = config.task->loss(*model, config.task->batch(0), {});
  backward(loss);
  CHECK(std::isfinite(loss.item()));
  for (const Named& one : tensors(*model)) {
    CAPTURE(one.name);
    CHECK(grad_of(*one.tensor).shape() == one.tensor->shape());
  }
  CHECK(config.task->test(*model, config.decode).scores.list.size() == 2);
}

TEST_CASE("pictures: patches that do not fit, and what cannot be said of them, are refused") {
  const auto refused = [](Settings settings) {
    settings.emplace_back("data.side", "32");
    try {
      loaded("lra-pathfinder-best", settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK_THAT(refused({{"model.patch", "3"}}), containing("It must divide data.side = 32"));
  CHECK_THAT(refused({{"model.patch", "32"}}), containing("be smaller"));
  CHECK_THAT(refused({{"model.patch", "0"}}), containing("model.patch = 0"));
  CHECK_THAT(refused({{"model.patch", "4"}, {"data.pixel_zero", "pad"}, {"model.position", "learned"}}),
             containing("data.pixel_zero = pad"));
  CHECK_THAT(refused({{"model.patch", "4"}, {"model.max_length", "63"}}),
             containing("an image has 64 patches"));
  CHECK_THAT(refused({{"model.patch", "4"}, {"model.max_length", "64"}, {"data.max_length", "60"}}),
             containing("data.max_length = 60, but an image has 64 patches"));
  CHECK_THAT(refused({{"model.patch", "4"}, {"data.predict", "masked"}}), containing("model.patch = 1"));
  CHECK_THAT(refused({{"model.patch", "4"}, {"train.pretrain", "masked"}, {"train.pretrain_steps", "2"}}),
             containing("model.patch is not 1"));
}
