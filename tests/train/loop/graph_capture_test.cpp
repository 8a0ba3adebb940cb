// Captured and replayed steps: bit-identical to plain steps; what cannot be captured runs plainly.
#include "heed/train/loop/graph_capture.h"

#include <cstdlib>

#include "heed/autograd/ops.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/nn/linear.h"
#include "heed/tests/any_device.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

namespace {

/// Warns and returns true where there is no device to test on.
bool lacks_cuda() {
  if (devices().size() > 1) return false;
  WARN("no device: " << why_no_cuda());
  return true;
}

Tensor inputs(uint64_t seed) {
  Rng rng(seed);
  const Tensor x(Shape{16, 12});
  fill_normal(x, 0, 1, rng);
  return x;
}

/// Results of a training.
struct Trained {
  std::vector<double> losses, weights;
  bool replayed = false;
};

/// Two layers with dropout learn for some steps, each from other inputs.
Trained trained(bool replay, int steps) {
  setenv("HEED_REPLAY", replay ? "on" : "off", 1);
  Rng rng(7);
  Linear in(12, 24, rng), out(24, 4, rng);
  struct Both final : Module {
    Linear &in, &out;
    Both(Linear& first, Linear& second) : in(first), out(second) {}
    void fields(Fields& f) override {
      f("in", in);
      f("out", out);
    }
  } both(in, out);
  rng.advance();
  Optimizer optimizer(both, {.weight_decay = 0.1});
  const Tensor x = inputs(1);
  Tensor loss;
  CapturedStep step([&] {
    const Tensor hidden = dropout(gelu(in(x)), 0.3, &rng);
    const Tensor error = mean(square(out(hidden)));
    loss = error.detach();
    backward(error);
    optimizer.update(std::vector<Tensor>{loss});
  });
  Trained result;
  for (int i = 0; i < steps; ++i) {
    const Tensor next = inputs(static_cast<uint64_t>(10 + i));
    launch<kernel::Copy>(x.device(), next, x);
    optimizer.begin_step(0.01 / (1 + i));
    step();
    optimizer.end_step();
    rng.advance();
    result.losses.push_back(loss.item());
  }
  result.weights = optimizer.values().to_doubles();
  result.replayed = step.replays();
  setenv("HEED_REPLAY", "on", 1);
  return result;
}

/// x = 2 x + 1, by way of so many numbers that are freed replayed.
void double_plus_one(int64_t numbers, const Tensor& x) {
  const Tensor between(Shape{numbers});
  const Tensor part = view::slice(between, 0, 0, x.size());
  launch<kernel::Affine>(x.device(), x, 2.0, 1.0, part);
  launch<kernel::Copy>(x.device(), part, x);
}

/// Frees cached memory before and after a test, and removes the cap after it.
struct NothingCached {
  NothingCached() { release_cached(); }
  ~NothingCached() {
    cap_memory(0);
    release_cached();
  }
};

}  // namespace

TEST_CASE(
    "replay: training gives the same losses and weights to the bit, with steps that differ in all they may") {
  if (lacks_cuda()) return;
  const DefaultDevice device(Device::cuda);
  const Trained op_by_op = trained(false, 9), replayed = trained(true, 9);
  CHECK_FALSE(op_by_op.replayed);
  CHECK(replayed.replayed);
  CHECK(op_by_op.losses == replayed.losses);
  CHECK(op_by_op.weights == replayed.weights);
  CHECK(op_by_op.losses[3] != op_by_op.losses[4]);
  for (const double loss : op_by_op.losses) CHECK(std::isfinite(loss));
}

TEST_CASE(
    "replay: a step that waits for the device, asks the host for chance, or moves its memory runs as it is") {
  if (lacks_cuda()) return;
  const DefaultDevice device(Device::cuda);
  Tensor x = Tensor::zeros(Shape{4});
  Rng rng(1);
  int undone = 0;
  const auto runs = [&](const std::function<void()>& step, const std::string& why) {
    undone = 0;
    CapturedStep replay(
        step, {.fixed_tensors = [&] { return std::vector<Tensor*>{&x}; }, .undo = [&] { ++undone; }});
    for (int i = 0; i < 5; ++i) replay();
    CHECK_FALSE(replay.replays());
    CHECK_THAT(replay.why_not(), containing(why));
    CHECK(undone == 1);
  };
  const auto add_one = [&] { launch<kernel::Affine>(x.device(), x, 1.0, 1.0, x); };
  int steps = 0;
  runs([&] { add_one(), steps += x.to_host()[0] > 0 ? 1 : 0; }, "reading numbers of the device");
  CHECK(steps == 5);
  CHECK(x.to_host()[0] == 5);
  runs([&] { add_one(), rng.uniform(); }, "decided on the host");
  runs([&] { x = affine(x, 1, 1); }, "moves a parameter or a buffer");
  runs([&] { add_one(), Tensor::of<float>(std::vector<float>(100, 1.F), Shape{100}); },
       "a copy from ordinary memory of the host");
  CHECK(x.to_host()[0] == 20);
}

TEST_CASE("replay: a step that does not fit beside the rest once more runs as it is") {
  if (lacks_cuda()) return;
  const DefaultDevice device(Device::cuda);
  const NothingCached nothing_cached;
  const Tensor x = Tensor::zeros(Shape{4});
  Tensor beside;  // lies where the step's memory does, so that it cannot be given back
  {
    const Tensor between(Shape{10'000'000});
    beside = Tensor(Shape{5'000});
  }
  int undone = 0;
  CapturedStep replay([&] { double_plus_one(10'000'000, x); },
                      {.fixed_tensors = {}, .undo = [&] { ++undone; }});
  replay();
  replay();
  cap_memory(memory_use().reserved + 1'000'000);
  for (int i = 0; i < 3; ++i) replay();
  CHECK_FALSE(replay.replays());
  CHECK(undone == 1);
  CHECK_THAT(replay.why_not(), containing("has memory of its own") && containing("memory of the GPU"));
  CHECK(x.to_host() == std::vector<float>(4, 31.F));
}

TEST_CASE("replay: a recorded step makes room for another that runs as it is, and then does so, too") {
  if (lacks_cuda()) return;
  const DefaultDevice device(Device::cuda);
  const NothingCached nothing_cached;
  const Tensor x = Tensor::zeros(Shape{4}), y = Tensor::zeros(Shape{4});
  cap_memory(memory_use().reserved + 120'000'000);
  CapturedStep first([&] { double_plus_one(10'000'000, x); });
  for (int i = 0; i < 4; ++i) first();
  CHECK(first.replays());
  // It fits, but not beside the memory of the other.
  double_plus_one(25'000'000, y);
  CHECK(y.to_host() == std::vector<float>(4, 1.F));
  for (int i = 0; i < 2; ++i) first();
  CHECK_FALSE(first.replays());
  CHECK_THAT(first.why_not(), containing("was needed beside them"));
  CHECK(x.to_host() == std::vector<float>(4, 63.F));
}

TEST_CASE("replay: of several processes all replay a step, or none") {
  if (lacks_cuda()) return;
  const DefaultDevice device(Device::cuda);
  const std::string theirs = GENERATE("", "process 2 of 2: it does not fit");
  const Tensor x = Tensor::zeros(Shape{4});
  std::vector<std::string> asked;
  int undone = 0;
  CapturedStep replay([&] { double_plus_one(100, x); }, {.fixed_tensors = {},
                                                         .undo = [&] { ++undone; },
                                                         .agree =
                                                             [&](const std::string& ours) {
                                                               asked.push_back(ours);
                                                               return ours.empty() ? theirs : ours;
                                                             }});
  for (int i = 0; i < 5; ++i) replay();
  CHECK(x.to_host() == std::vector<float>(4, 31.F));
  CHECK(asked == std::vector<std::string>{""});
  CHECK(replay.replays() == theirs.empty());
  CHECK(replay.why_not() == theirs);
  CHECK(undone == (theirs.empty() ? 0 : 1));

  // One that cannot be recorded asks the others, too: they wait for it.
  asked.clear();
  CapturedStep waits([&] { x.to_host(); },
                     {.fixed_tensors = {}, .undo = {}, .agree = [&](const std::string& ours) {
                        asked.push_back(ours);
                        return ours;
                      }});
  for (int i = 0; i < 4; ++i) waits();
  REQUIRE(asked.size() == 1);
  CHECK_THAT(asked[0], containing("reading numbers of the device"));
}

TEST_CASE("replay: the CPU runs every step") {
  int steps = 0;
  CapturedStep replay([&] { ++steps; });
  for (int i = 0; i < 4; ++i) replay();
  CHECK(steps == 4);
  CHECK_FALSE(replay.replays());
}
