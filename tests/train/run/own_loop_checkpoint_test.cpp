// A loop of one's own that stops, loads its checkpoint and goes on.
#include "heed/train/run/own_loop_checkpoint.h"

#include "heed/autograd/ops.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

TensorDataset numbers(int64_t count) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(i % 7) - 3);
    x.push_back(static_cast<float>(i % 5) - 2);
    y.push_back(x[x.size() - 2] - 2 * x.back());
  }
  return TensorDataset({Tensor::from(x, Shape{count, 2}), Tensor::from(y, Shape{count, 1})});
}

/// A program's loop: linear regression with dropout on the inputs.
struct Loop {
  explicit Loop(const TensorDataset& data, int64_t batch_size = 4)
      : loader(data, {.batch_size = batch_size, .shuffle = true}), model(2, 1, rng), optimizer(model, {}) {}
  Rng rng{3};
  DataLoader loader;
  Linear model;
  Optimizer optimizer;
  TrainingState state{.model = model, .optimizer = &optimizer, .loader = &loader, .rng = &rng};

  void train(int64_t until) {
    while (state.step < until) {
      const Batch batch = loader.next();
      const Tensor error = model(dropout(batch[0], 0.2, &rng)) - batch[1];
      backward(mean(error * error));
      optimizer.step(0.05);
      rng.advance();
      ++state.step;
    }
  }
  std::string bits() { return save_bytes(model) + optimizer.save(); }
};

}  // namespace

TEST_CASE("own_loop_checkpoint: a resumed loop is bit-identical to an uninterrupted one") {
  const Scratch scratch;
  const TensorDataset data = numbers(18);
  Loop whole(data);
  whole.train(12);

  Loop first(data);
  CHECK(!load_checkpoint(scratch / "run", first.state));
  first.train(7);
  save_checkpoint(scratch / "run", first.state);
  Loop second(data);
  second.train(3);  // what it has is replaced
  REQUIRE(load_checkpoint(scratch / "run", second.state));
  CHECK(second.state.step == 7);
  CHECK(second.bits() == first.bits());
  second.train(12);
  CHECK(second.bits() == whole.bits());
  CHECK(second.loader.position() == whole.loader.position());
}

TEST_CASE("own_loop_checkpoint: the newest ones stay, and any of them is loaded by its step") {
  const Scratch scratch;
  const TensorDataset data = numbers(18);
  Loop loop(data);
  std::vector<std::string> bits;
  for (int64_t step = 1; step <= 4; ++step) {
    loop.train(step);
    save_checkpoint(scratch.path(), loop.state, 3);
    bits.push_back(loop.bits());
  }
  CHECK(list_checkpoints(scratch.path()) == std::vector<int64_t>{2, 3, 4});
  REQUIRE(load_checkpoint(scratch.path(), loop.state, "2"));
  CHECK(loop.state.step == 2);
  CHECK(loop.bits() == bits[1]);
}

TEST_CASE("own_loop_checkpoint: what does not fit is refused") {
  const Scratch scratch;
  const TensorDataset data = numbers(18);
  Loop loop(data), other(data, 5);
  loop.train(2);
  save_checkpoint(scratch / "run", loop.state);
  const std::string before = other.bits();
  CHECK_THROWS_WITH(load_checkpoint(scratch / "run", other.state),
                    containing("batches of 4") && containing("batches of 5"));
  CHECK(other.bits() == before);

  TrainingState weights{.model = loop.model, .step = 9};
  save_checkpoint(scratch / "weights", weights);
  CHECK_THROWS_WITH(load_checkpoint(scratch / "weights", loop.state), containing("it has no loader"));
  weights.step = 0;
  REQUIRE(load_checkpoint(scratch / "weights", weights));
  CHECK(weights.step == 9);
  CHECK_THROWS_WITH(save_checkpoint(scratch / "run", {.model = loop.model, .step = -1}),
                    containing("step = -1"));
  CHECK_THROWS_WITH(save_checkpoint(scratch / "run", weights, 0), containing("keep = 0"));
}
