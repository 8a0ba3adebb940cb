// heed export: initial weights for other programs, of any task and in both precisions.
#include "heed/core/io/json.h"
#include "heed/core/io/safetensors.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/commands/command.h"
#include "heed/train/program.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/registry.h"

using namespace heed;

namespace {

int heed_program(std::vector<std::string> words) {
  words.insert(words.begin(), "heed");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return run_program(static_cast<int>(arguments.size()), arguments.data());
}

std::string preset_of(const TaskEntry& entry) {
  for (const Preset& preset : presets()) {
    if (std::string(preset.task) == entry.name) return preset.name;
  }
  FAIL("no preset is of the task " << entry.name);
  return {};
}

}  // namespace

TEST_CASE("export: weights, batches and rates of a run's beginning, for every task and precision") {
  for (const TaskEntry& entry : tasks()) {
    for (const std::string precision : {"f32", "f64"}) {
      CAPTURE(entry.name, precision);
      const std::string preset = preset_of(entry);
      Scratch scratch;
      const std::string folder = (scratch / "start").string(), file_name = (scratch / "run.toml").string();
      Config config = small_preset(preset_of(entry), 9);
      config.set("train.grad_accumulation", "2", "");
      config.set("train.precision", precision, "");
      config.set("train.grad_clip_value", "0.25", "");
      config.set("train.decay_vectors", "true", "");
      config.set("train.schedule", "one_cycle", "");
      config.set("train.cycle_momentum", "true", "");
      io::write(file_name, to_toml(config));
      REQUIRE(heed_program({"export", file_name, "--out", folder, "--rounds", "4", "--device", "cpu"}) == 0);
      config.task->load(config, {}, [](const std::string&) {});
      Rng rng(static_cast<uint64_t>(config.train.seed));
      const auto model = new_model(config, rng);
      CHECK((io::read(scratch / "start/model.safetensors") == save_bytes(*model)));
      CHECK(tensors(*model)[0].tensor->dtype() == (precision == "f64" ? DType::f64 : DType::f32));

      const std::string bytes = io::read(scratch / "start/batches.safetensors");
      const SafeTensors file = SafeTensors::parse(bytes, "batches");
      const std::vector<std::string> parts = config.task->tensor_names();
      CHECK(file.entries().size() == 4 * parts.size());
      config.task->plan(0);
      for (int64_t i = 0; i < 4; ++i) {
        const Batch batch = config.task->batch(i);
        REQUIRE(batch.tensors.size() == parts.size());
        for (size_t j = 0; j < parts.size(); ++j) {
          const auto found = file.bytes(file.at("00000" + std::to_string(i) + "." + parts[j]));
          const Tensor x = contiguous(batch.tensors[j]);
          REQUIRE(static_cast<int64_t>(found.size()) == x.bytes());
          CHECK(std::memcmp(found.data(), x.raw(), found.size()) == 0);
        }
      }
      const Json rates = parse_json(io::read(scratch / "start/rates.json"), "rates");
      CHECK(rates.at("total_steps").integer() == 9);
      CHECK(rates.at("grad_clip_value").real() == 0.25);
      CHECK(rates.at("decay_vectors").boolean());
      REQUIRE(rates.at("momenta").list().size() == 2);
      CHECK(rates.at("momenta").list()[1].real() == *config.train.schedule.momentum(2, 9));
      REQUIRE(rates.at("rates").list().size() == 2);
      CHECK(rates.at("rates").list()[1].real() == config.train.schedule.at(2, 9, config.model.d_model));
      CHECK(heed_program({"export", file_name, "--out", folder}) == static_cast<int>(Fault::usage));
    }
  }
}

TEST_CASE("export: test examples are those of the test split, as many as were asked for") {
  Scratch scratch;
  const std::string file_name = (scratch / "run.toml").string(), folder = (scratch / "start").string();
  Config config = small_preset("mqar", 2);
  io::write(file_name, to_toml(config));
  REQUIRE(heed_program({"export", file_name, "--out", folder, "--test-examples", "3"}) == 0);
  config.task->load(config, {}, [](const std::string&) {});
  const std::vector<int64_t> numbers{0, 1, 2};
  const Tensor expected = example_provider(*config.task).test_batch(numbers, 0).batch[0];
  const std::string bytes = io::read(scratch / "start/test.safetensors");
  const SafeTensors file = SafeTensors::parse(bytes, "test");
  const auto found = file.bytes(file.at("000000.ids"));
  REQUIRE(static_cast<int64_t>(found.size()) == expected.bytes());
  CHECK(std::memcmp(found.data(), contiguous(expected).raw(), found.size()) == 0);
  CHECK(heed_program({"export", file_name, "--out", folder + "2", "--test-examples", "1000"}) ==
        static_cast<int>(Fault::usage));
}

TEST_CASE("export: --device is of the call alone") {
  Scratch scratch;
  const std::string file_name = (scratch / "run.toml").string();
  Config config = small_preset("recall", 2);
  io::write(file_name, to_toml(config));
  for (const Device outer : devices()) {
    for (const Device device : devices()) {
      const DefaultDevice here(outer);
      CAPTURE(to_string(outer), to_string(device));
      const std::string folder = (scratch / text(to_string(outer), "-", to_string(device))).string();
      CHECK(heed_program(
                {"export", file_name, "--out", folder, "--rounds", "1", "--device", to_string(device)}) == 0);
      CHECK(default_device == outer);
    }
  }
}
