// Estimates of time and memory before a run: accurate, without side effects, and an error when too much.
#include "heed/train/loop/run_estimate.h"

#include <cmath>
#include <limits>

#include "heed/core/memory/storage.h"
#include "heed/core/operation_count.h"
#include "heed/core/settings_in_errors.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/loop/machine_memory.h"

using namespace heed;

namespace {

Config loaded(Config config) {
  config.task->load(config, {}, [](const std::string&) {});
  return config;
}

/// Smaller data and fewer steps of a preset; the shapes of its batches stay.
Config shortened(const std::string& preset) {
  Config config = make_config(preset);
  Settings settings{{"train.epochs", "0"}, {"train.max_steps", "30"}, {"train.validate_every", "15"}};
  if (preset.starts_with("translate")) {
    settings.insert(settings.end(), {{"data.num_examples", "4000"},
                                     {"data.validation", "100"},
                                     {"data.test_size", "10"},
                                     {"data.bleu_pairs", "5"}});
  } else if (preset == "mnist") {
    settings.insert(settings.end(), {{"data.num_examples", "6000"}, {"data.test_size", "100"}});
  } else if (preset == "lm") {
    settings.emplace_back("data.num_examples", "60000");
  }
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  return config;
}

/// Counted operations of some work.
double flops_of(const std::function<void()>& work) {
  const int64_t before = Count::flops();
  work();
  return static_cast<double>(Count::flops() - before);
}

/// Counted operations that the parts of a validation stand for, of these units.
double flops_of_parts(const Task& task, Module& model, double ValidationPart::*units) {
  double sum = 0;
  for (const ValidationPart& part : task.validation_cost(model))
    sum += flops_of(part.compute) * part.*units / part.some;
  return sum;
}

}  // namespace

TEST_CASE("estimate: the memory of tensors is within a tenth of what the run takes", "[slow]") {
  const std::string preset = GENERATE("translate", "translate-seq2seq", "lm", "mnist", "recall");
  CAPTURE(preset);
  Scratch scratch;
  Config config = loaded(shortened(preset));
  RunFolder folder = RunFolder::create({.out = scratch.path(), .name = "run"});
  Progress progress;
  progress.quiet = true;
  release_cached();
  Trainer trainer(config, folder, std::nullopt, progress);
  const Estimate expected = trainer.estimate();
  reset_peak();
  trainer.run();
  const auto measured = static_cast<double>(memory_use().peak);
  CHECK(std::abs(static_cast<double>(expected.tensors) - measured) < 0.1 * measured);
  CHECK(expected.parameters == count_parameters(trainer.model()));
  CHECK(expected.weights >= 4 * expected.parameters);
  CHECK(expected.gradients == expected.weights);
  CHECK(expected.moments == 2 * expected.weights);
  CHECK(expected.activations > 0);
  CHECK(expected.tensors >
        expected.weights + expected.gradients + expected.moments + expected.activations / 2);
  CHECK(expected.peak >= expected.now);
  CHECK(expected.flops > 6.0 * static_cast<double>(expected.parameters));
  CHECK(expected.seconds > 0);
  CHECK(!expected.users.empty());
}

TEST_CASE("estimate: parts of a validation stand for all of it") {
  const std::string preset =
      GENERATE("translate", "translate-seq2seq", "lm", "mnist", "recall", "lra-listops", "lra-text");
  CAPTURE(preset);
  Config config = shortened(preset);
  if (preset.starts_with("lra")) {
    for (const char* key : {"data.validation", "data.test_size"}) config.set(key, "300", "");
    config.set("data.num_examples", "1000", "");
  }
  if (preset.starts_with("translate")) config.set("data.bleu_pairs", "0", "");
  config = loaded(std::move(config));
  Rng rng(5);
  const auto model = new_model(config, rng);
  const NoGrad no_grad;
  const double whole = flops_of([&] { config.task->validate(*model); });
  const double expected = flops_of_parts(*config.task, *model, &ValidationPart::all);
  REQUIRE(whole > 0);
  CHECK(std::abs(expected - whole) < 0.1 * whole);
}

TEST_CASE("estimate: validations that decode are told, as often as they come") {
  const auto parts = [](const char* decoded) {
    const Config config = loaded(tiny({{"data.bleu_pairs", decoded}}));
    Rng rng(5);
    const auto all = config.task->validation_cost(*new_model(config, rng));
    return std::count_if(all.begin(), all.end(), [](const ValidationPart& part) { return part.all > 0; });
  };
  CHECK(parts("0") == 1);
  CHECK(parts("2") == 2);
  const auto estimate = [](const char* every) {  // the estimate of 12 steps
    return estimate_run(loaded(tiny({{"train.validate_every", every}})));
  };
  const Estimate often = estimate("1"), thrice = estimate("5"), once = estimate("12");
  CHECK(often.validations == 12);
  CHECK(thrice.validations == 3);  // the last step is one of them
  CHECK(once.validations == 1);
  CHECK(estimate("0").validations == 12);  // a tenth of the run
  CHECK(once.validation_seconds > 0);
  CHECK(thrice.whole() == thrice.seconds + 3 * thrice.validation_seconds + thrice.after_steps());
}

TEST_CASE("estimate: parts of scoring stand for all of the test, which belongs to the time of the run") {
  const std::string preset = GENERATE("lm", "mnist", "recall", "lra-listops", "lra-text");
  CAPTURE(preset);
  Config config = shortened(preset);
  if (preset != "lm") config.set("data.test_size", "600", "");
  if (preset.starts_with("lra")) {
    config.set("data.validation", "100", "");
    config.set("data.num_examples", "1000", "");
  }
  config = loaded(std::move(config));
  Rng rng(5);
  const auto model = new_model(config, rng);
  std::optional<NoGrad> no_grad(std::in_place);
  const double whole = flops_of([&] { config.task->test(*model, config.decode); });
  const double expected = flops_of_parts(*config.task, *model, &ValidationPart::test);
  REQUIRE(whole > 0);
  CHECK(std::abs(expected - whole) < 0.2 * whole);
  no_grad.reset();
  const Estimate estimate = estimate_run(config);
  CHECK(estimate.test_seconds > 0);
  CHECK(estimate_json(estimate).at("seconds").real() ==
        Approx(estimate.seconds + static_cast<double>(estimate.validations) * estimate.validation_seconds +
               estimate.after_steps()));
  CHECK(estimate.after_steps() >= static_cast<double>(estimate.tests) * estimate.test_seconds);
}

TEST_CASE("estimate: what a session took is compared with as much, before its test is scored and after") {
  Estimate expected;
  expected.seconds = 10;
  expected.validations = 2;
  expected.validation_seconds = 1;
  expected.test_seconds = 2;
  expected.tests = 2;
  expected.report_seconds = 4;
  Json took = measured_cost_json(expected, 9, 3);
  CHECK(took.at("seconds").real() == 12);
  CHECK(took.at("time_estimate_off").real() == 0);
  set_measured_times(took, expected, 9, 3, 4);
  CHECK(took.at("seconds").real() == 16);
  CHECK(took.at("seconds_of_test").real() == 4);
  CHECK(took.at("time_estimate_off").real() == Approx(0.25));
  Estimate once = expected;
  once.tests = 1;
  set_measured_times(took, once, 9, 3, 6);
  CHECK(took.at("time_estimate_off").real() == 0);
}

TEST_CASE("estimate: nothing is left behind: weights, moments, random numbers, memory") {
  const Config config = loaded(tiny());
  Rng rng(5);
  const auto model = new_model(config, rng);
  Optimizer optimizer(*model, config.train.optimizer);
  rng.advance();
  rng.next();
  const std::string weights = save_bytes(*model), moments = optimizer.save();
  const int64_t live = memory_use().live;
  estimate_run(config, *model, optimizer, rng, 12);
  CHECK((save_bytes(*model) == weights));
  CHECK((optimizer.save() == moments));
  CHECK(rng.tick() == 1);
  CHECK(rng.draws() == 1);
  CHECK(memory_use().live == live);
  for (const Named& named : parameters(*model)) CHECK(!grad_of(*named.tensor));
}

TEST_CASE("estimate: every optimizer is put back") {
  const Config config = loaded(tiny({{"train.optimizer", "sgd"}}));
  Rng rng(5);
  const auto model = new_model(config, rng);
  Optimizer optimizer(*model, config.train.optimizer);
  const std::string weights = save_bytes(*model), moments = optimizer.save();
  CHECK(estimate_run(config, *model, optimizer, rng, 12).moments == optimizer.values().bytes());
  CHECK((save_bytes(*model) == weights));
  CHECK((optimizer.save() == moments));
}

TEST_CASE("estimate: a step of many batches is rehearsed by a few of them") {
  const auto rehearsed = [](const char* accumulate, int64_t& computed) {
    const Config config = loaded(tiny({{"train.grad_accumulation", accumulate}}));
    const int64_t before = Count::flops();
    const Estimate estimate = estimate_run(config);
    computed = Count::flops() - before;
    return estimate.flops;
  };
  int64_t of_four = 0, of_sixty_four = 0;
  const double four = rehearsed("4", of_four), sixty_four = rehearsed("64", of_sixty_four);
  CHECK(sixty_four > 12 * four);
  CHECK(sixty_four < 20 * four);
  // However often they are timed, these are far from 64.
  CHECK(static_cast<double>(of_sixty_four) < 40 * four / 4);
}

TEST_CASE("estimate: a run that does not fit is refused with the largest users and a way out") {
  const SettingsSourceScope program(SettingsSource::command_line);
  const Config config = loaded(tiny());
  Rng rng(5);
  const auto model = new_model(config, rng);
  Optimizer optimizer(*model, config.train.optimizer);
  release_cached();
  cap_memory(memory_use().reserved + 300000);
  std::string said;
  try {
    estimate_run(config, *model, optimizer, rng, 12);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::memory);
    said = error.what();
  }
  cap_memory(0);
  for (const char* part :
       {"and the cap is ", "computed before the first step", "Most was held by ", "weights ",
        "Try --batch-tokens 100 (train.batch_tokens, now 200) with --grad-accumulation 4"}) {
    CHECK_THAT(said, containing(part));
  }
}

TEST_CASE("estimate: where the weights alone do not fit, no smaller batch is advised") {
  Config config = tiny();
  config.train.batch_size = 16;
  release_cached();
  cap_memory(memory_use().reserved + 100000);
  std::string said;
  try {
    const MemoryScope owned(MemoryKind::weights);
    const Tensor maximum(Shape{64});
    try {
      const Tensor weights(Shape{1 << 20});
    } catch (...) {
      explain_memory(config, nullptr, "in a test");
    }
  } catch (const Error& error) {
    said = error.what();
  }
  cap_memory(0);
  CHECK_THAT(said, containing("4.2 MB are asked for"));
  CHECK_THAT(said, containing("Try a smaller model.d_model (now ") && containing("model.layers"));
  for (const char* never : {"--batch-size", "--grad-accumulation", "smaller batch", "weights 256", " 0.0 MB"})
    CHECK_THAT(said, !containing(never));
}

TEST_CASE("estimate: who held the memory is told of the device that had too little") {
  if (devices().size() < 2) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const DefaultDevice device(Device::cuda);
  const Device small = GENERATE(Device::cpu, Device::cuda);
  const MemoryScope owned(small == Device::cpu ? MemoryKind::batches : MemoryKind::weights);
  release_cached(small);
  const Tensor maximum(Shape{1 << 20}, DType::f32, small);
  cap_memory(1, small);
  std::string said;
  try {
    try {
      const Tensor more(Shape{1 << 24}, DType::f32, small);
    } catch (...) {
      explain_memory(tiny(), nullptr, "in a test");
    }
  } catch (const Error& error) {
    said = error.what();
  }
  cap_memory(0, small);
  CHECK_THAT(said, containing(small == Device::cpu ? "memory of the machine" : "memory of the GPU"));
  CHECK_THAT(said,
             containing(small == Device::cpu ? "Most was held by batches 4" : "Most was held by weights 4"));
}

TEST_CASE("estimate: other errors pass through, and bad_alloc is one of memory") {
  Config config = tiny();
  config.train.batch_size = 16;
  Rng rng(1);
  const auto explained = [&](const auto& thrown, Module* model = nullptr) {
    try {
      try {
        throw thrown;
      } catch (...) {
        explain_memory(config, model, "in a test");
      }
    } catch (const Error& error) {
      return std::make_pair(error.fault(), std::string(error.what()));
    }
  };
  CHECK(explained(Error(Fault::data, "other")) == std::make_pair(Fault::data, std::string("other")));
  const auto [fault, what] = explained(std::bad_alloc());
  CHECK(fault == Fault::memory);
  CHECK_THAT(what, containing("out of memory") && containing("It ran out in a test"));
  CHECK_THAT(what, containing("Try a smaller model.d_model"));
  Linear made(2, 2, rng);  // stands for the model: what is asked for beside it is a batch
  CHECK_THAT(explained(std::bad_alloc(), &made).second,
             containing("Try train.batch_size = 8 (now 16) with train.grad_accumulation = "));
  const SettingsSourceScope program(SettingsSource::command_line);
  CHECK_THAT(explained(std::bad_alloc(), &made).second,
             containing("Try --batch-size 8 (train.batch_size, now 16)"));
}

TEST_CASE("estimate: batches of a translator differ, and say in what") {
  const Config config = loaded(tiny());
  const int64_t count = config.task->plan(0);
  const std::vector<double> first = config.task->batch_cost(0);
  bool differ = false;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<double> batch_cost = config.task->batch_cost(i);
    REQUIRE(batch_cost.size() == first.size());
    for (const double extent : batch_cost) CHECK(extent > 0);
    differ = differ || batch_cost != first;
    // Rows and columns as the batch has them.
    const Batch batch = config.task->batch(i);
    CHECK(batch_cost[0] == static_cast<double>(batch.tensors[0].size()));
    CHECK(batch_cost[1] == static_cast<double>(batch.tensors[2].size()));
    CHECK(batch_cost[2] == batch.weight);
  }
  CHECK(differ);
}

TEST_CASE("estimate: memory of this process and machine") {
  CHECK(resident_bytes() > 1 << 20);
  CHECK(peak_resident_bytes() >= resident_bytes());
  CHECK(free_bytes() > 1 << 20);
  // What nobody tells is much, and leaves room for sums.
  CHECK(free_bytes("nowhere") > 1 << 20);
  CHECK(free_bytes("nowhere") <= std::numeric_limits<int64_t>::max() / 2);
}

TEST_CASE("estimate: it is told beside what was measured only where it was off by more than a fifth") {
  CHECK(with_estimate(69, 2.73, clock_text) == "1:09 (the estimate was 4:17)");
  CHECK(with_estimate(69, -0.5, clock_text) == "1:09 (the estimate was 0:35)");
  for (const double near : {-0.2, 0.0, 0.2}) CHECK(with_estimate(69, near, clock_text) == "1:09");
  CHECK(with_estimate(69, -1, clock_text) == "1:09");  // there was none
  CHECK(with_estimate(1, 0.3, clock_text) == "0:01");  // the words are the same
}

TEST_CASE("estimate: what is left of a run has its own steps and validations") {
  Estimate whole;
  whole.seconds = 76;
  whole.validations = 11;
  whole.validation_seconds = 2;
  whole.test_seconds = 1;
  const auto time_of_rest = [&](int64_t taken) {
    return estimate_lines(remaining_estimate(whole, 152, taken, 15), 152 - taken, taken > 0).back().second;
  };
  CHECK(time_of_rest(0) == "about 1:39 for 152 steps, 11 validations and the test (estimate)");
  CHECK(time_of_rest(150) == "about 0:04 for the 2 steps left, 1 validation and the test (estimate)");
  CHECK(time_of_rest(151) == "about 0:04 for the 1 step left, 1 validation and the test (estimate)");
  CHECK(time_of_rest(152) == "about 0:01 for the 0 steps left, 0 validations and the test (estimate)");
}
