// Gradients summed over processes in buckets during the backward pass.
#include "heed/train/distributed/gradient_reducer.h"

#include "heed/autograd/ops.h"
#include "heed/autograd/tape.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/device.h"
#include "heed/tests/thread_group.h"

using namespace heed;

namespace {

/// Five matrices with biases, one after the other, and one that nothing uses.
struct Tower : Module {
  explicit Tower(Rng& rng) {
    for (int i = 0; i < 6; ++i) layers.push_back(std::make_unique<Linear>(8, 8, rng));
  }
  void fields(Fields& f) override { f("layers", layers); }
  Tensor operator()(Tensor x) {
    for (size_t i = 0; i < 5; ++i) x = tanh((*layers[i])(x));
    return x;
  }
  std::vector<std::unique_ptr<Linear>> layers;
};

struct Found {
  std::vector<std::vector<double>> gradients;  // gradient of each parameter, after each step
  std::vector<double> tails;
  int64_t buckets = 0, early = 0;
};

/// Two steps of each of `size` members, whose inputs differ.
std::vector<Found> steps_of_members(Device device, int64_t size, int64_t bucket) {
  std::vector<Found> all(static_cast<size_t>(size));
  as_members(size, [&](ProcessGroup& group) {
    const DefaultDevice here(device);
    Rng rng(7);
    Tower tower(rng);
    convert(tower, DType::f64);
    Optimizer optimizer(tower, {.kind = OptimizerKind::sgd, .grad_clip = 0});
    GradientReducer exchange(optimizer, make_all_reduce(group, device, [](const std::string&) {}), bucket);
    Found& found = all[static_cast<size_t>(group.rank())];
    found.buckets = exchange.buckets();
    for (int step = 0; step < 2; ++step) {
      const double input = 0.1 * static_cast<double>(1 + group.rank() + 3 * step);
      const Tensor tail = Tensor::full(Shape{2}, input, DType::f64);
      const Tensor loss = sum(square(tower(Tensor::full(Shape{2, 8}, input, DType::f64))));
      exchange.begin();
      {
        const GradientHooks watching = exchange.watch();
        backward(loss);
      }
      exchange.finish(tail);
      found.early = exchange.sent_early();
      for (const Tensor& leaf : optimizer.leaves()) found.gradients.push_back(leaf.node()->grad.to_doubles());
      found.tails.push_back(tail.to_doubles()[1]);
      optimizer.step(0);
    }
  });
  return all;
}

}  // namespace

TEST_CASE("exchange: the sums of the members, whatever the buckets, the same bits for all") {
  const Device device = any_device();
  const std::vector<Found> whole = steps_of_members(device, 3, 1 << 20);
  CHECK(whole[0].buckets == 2);  // matrices and vectors
  for (const int64_t bucket : {1, 100, 150}) {
    CAPTURE(bucket);
    const std::vector<Found> cut = steps_of_members(device, 3, bucket);
    CHECK(cut[0].buckets >= 4);
    for (const Found& found : cut) {
      CHECK(found.gradients == whole[0].gradients);
      CHECK(found.tails == whole[0].tails);
    }
  }
  CHECK(whole[0].tails[0] == Approx(0.1 * (1 + 2 + 3)));
  CHECK(whole[0].tails[1] == Approx(0.1 * (4 + 5 + 6)));
}

TEST_CASE("exchange: what comes out is the gradient of the sum of the losses") {
  const Device device = any_device();
  const std::vector<Found> found = steps_of_members(device, 2, 100);
  const DefaultDevice here(device);
  Rng rng(7);
  Tower tower(rng);
  convert(tower, DType::f64);
  Optimizer optimizer(tower, {.kind = OptimizerKind::sgd, .grad_clip = 0});
  for (const double input : {0.1, 0.2})
    backward(sum(square(tower(Tensor::full(Shape{2, 8}, input, DType::f64)))));
  const std::span<const Tensor> leaves = optimizer.leaves();
  int64_t unused = 0;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::vector<double>& sums = found[1].gradients[i];
    if (leaves[i].node()->fresh) {
      CHECK(sums == std::vector<double>(sums.size(), 0.0));
      ++unused;
      continue;
    }
    const std::vector<double> expected = leaves[i].node()->grad.to_doubles();
    for (size_t k = 0; k < sums.size(); ++k) CHECK(sums[k] == Approx(expected[k]).epsilon(1e-12));
  }
  CHECK(unused == 2);
}

TEST_CASE("exchange: buckets of the last layers are on their way before the sweep is over") {
  // One matrix a bucket: the last one, which nothing uses, is in front of the queue and holds the others up.
  const std::vector<Found> waiting = steps_of_members(Device::cpu, 2, 1);
  CHECK(waiting[0].early == 0);
  std::vector<int64_t> early(2);
  as_members(2, [&](ProcessGroup& group) {
    Rng rng(7);
    Tower tower(rng);
    tower.layers.pop_back();
    Optimizer optimizer(tower, {.kind = OptimizerKind::sgd, .grad_clip = 0});
    GradientReducer exchange(optimizer, make_all_reduce(group, Device::cpu, [](const std::string&) {}), 1);
    const Tensor loss = sum(square(tower(Tensor::full(Shape{2, 8}, 0.5))));
    exchange.begin();
    {
      const GradientHooks watching = exchange.watch();
      backward(loss);
    }
    exchange.finish(Tensor::full(Shape{1}, 1));
    early[static_cast<size_t>(group.rank())] = exchange.sent_early();
  });
  CHECK(early == std::vector<int64_t>{10, 10});  // five matrices and five biases
}
