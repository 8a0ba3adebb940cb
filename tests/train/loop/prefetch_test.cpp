// Prefetched batches: order, completeness on the device, and errors at the right batch.
#include "heed/train/loop/prefetch.h"

#include <atomic>
#include <chrono>

#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"
#include "heed/tests/any_device.h"
#if HEED_CUDA_EMULATED
#include "heed/core/cuda/emulator/cuda_runtime.h"
#endif

using namespace heed;

namespace {

bool there_is_cuda() {
  if (devices().size() > 1) return true;
  WARN("no device: " << why_no_cuda());
  return false;
}

/// Step n: two batches, of n + 1 numbers that are all n and one i32 that is -n; every fourth is larger.
Prefetch::PreparedStep step_of(int64_t n) {
  Prefetch::PreparedStep made;
  made.after = {.epoch = n, .position = n + 1, .num_batches = 100};
  for (int64_t i = 0; i < 2; ++i) {
    Batch batch;
    const int64_t count = n % 4 == 3 ? 5000 + n : n + 1;
    batch.tensors = {Tensor::full(Shape{count}, static_cast<double>(n), DType::f32),
                     Tensor::full(Shape{1}, static_cast<double>(-n - i), DType::i32)};
    batch.weight = static_cast<double>(n);
    batch.tokens = n;
    made.batches.push_back(batch);
  }
  return made;
}

void check_step(const std::vector<Batch>& batches, int64_t n) {
  REQUIRE(batches.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(batches[i].weight == static_cast<double>(n));
    CHECK(batches[i].tensors[0].device() == Device::cuda);
    const std::vector<double> values = batches[i].tensors[0].to_doubles();
    CHECK(static_cast<int64_t>(values.size()) == step_of(n).batches[i].tensors[0].size());
    CHECK(std::all_of(values.begin(), values.end(), [&](double x) { return x == static_cast<double>(n); }));
    CHECK(batches[i].tensors[1].item() == static_cast<double>(-n) - static_cast<double>(i));
  }
}

/// Takes 24 steps and keeps the tensors of each; nothing waits for the device before the end.
void run_through(int ahead) {
  int64_t made = 0;
  Prefetch prefetch([&] { return step_of(made++); }, 24, ahead);
  std::vector<std::vector<Batch>> kept;
  std::vector<Batch> fixed;
  const Tensor sum = Tensor::zeros(Shape{1}, DType::f32, Device::cuda);
  for (int64_t n = 0; n < 24; ++n) {
    const Prefetch::PreparedStep& next = prefetch.next();
    CHECK(next.after.position == n + 1);
    if (n % 5 == 2) {  // into tensors that are there
      kept.push_back(next.batches);
      for (Batch& batch : kept.back()) {
        for (Tensor& x : batch.tensors) x = Tensor(x.shape(), x.dtype(), Device::cuda);
      }
      prefetch.copy_into(kept.back());
    } else {
      kept.push_back(prefetch.to_new_tensors());
    }
    // Something that takes time behind it.
    for (int i = 0; i < 3; ++i) launch<kernel::Affine>(Device::cuda, sum, 1.0, 1.0, sum);
  }
  for (int64_t n = 0; n < 24; ++n) check_step(kept[static_cast<size_t>(n)], n);
  CHECK(sum.item() == 72);
}

}  // namespace

TEST_CASE("prefetch: every step's batches arrive whole and in order, however late or early copies are") {
  if (!there_is_cuda()) return;
  for (const int ahead : {1, 2, 3, 7}) {
    CAPTURE(ahead);
    run_through(ahead);
#if HEED_CUDA_EMULATED
    for (const emulated::StreamOrder order : {emulated::StreamOrder::late, emulated::StreamOrder::early}) {
      CAPTURE(order == emulated::StreamOrder::late);
      emulated::order_streams(order);
      run_through(ahead);
      emulated::order_streams(emulated::StreamOrder::at_once);
    }
#endif
  }
}

TEST_CASE("prefetch: batches are there before they are asked for, and no more than wanted are made") {
  if (!there_is_cuda()) return;
  std::atomic<int64_t> made = 0;
  const auto until = [&](int64_t count) {
    for (int i = 0; i < 2000 && made < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return made.load();
  };
  Prefetch prefetch([&] { return step_of(made++); }, 6, 3);
  CHECK(until(3) == 3);
  for (int64_t n = 0; n < 6; ++n) {
    prefetch.next();
    check_step(prefetch.to_new_tensors(), n);
    CHECK(until(std::min<int64_t>(6, n + 3)) == std::min<int64_t>(6, n + 3));
  }
  CHECK(prefetch.waits() == 0);
  CHECK_THROWS_WITH(prefetch.next(), containing("more steps are asked for"));
}

TEST_CASE("prefetch: an error comes with the step whose batches it hit, and not before") {
  if (!there_is_cuda()) return;
  int64_t made = 0;
  Prefetch prefetch(
      [&] {
        if (made == 2) fail(Fault::data, "line 7 is not there");
        return step_of(made++);
      },
      9);
  for (int64_t n = 0; n < 2; ++n) {
    prefetch.next();
    check_step(prefetch.to_new_tensors(), n);
  }
  CHECK_THROWS_WITH(prefetch.next(), containing("line 7 is not there"));
  CHECK_THROWS_WITH(prefetch.next(), containing("more steps are asked for"));
}

TEST_CASE("prefetch: nobody waits for steps that are left") {
  if (!there_is_cuda()) return;
  int64_t made = 0;
  {
    const Prefetch prefetch([&] { return step_of(made++); }, 1000, 2);
  }
  CHECK(made <= 3);
}
