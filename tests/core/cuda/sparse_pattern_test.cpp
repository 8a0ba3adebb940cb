// Device copies of a sparse pattern: they live as long as the pattern and captured steps need them.
#include "heed/core/sparse_pattern.h"

#include "heed/core/constant_table.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/attention/pattern_attention_device.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/tests/any_device.h"

using namespace heed;

namespace {

constexpr int64_t length = 70, width = 8;

/// Each query may look at the keys up to its own, but for every third.
std::shared_ptr<kernel::Pattern> gaps() {
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->queries = pattern->keys = length;
  pattern->first.push_back(0);
  for (int32_t i = 0; i < length; ++i) {
    for (int32_t j = 0; j <= i; j += 3) pattern->runs.push_back({j, std::min(j + 2, i + 1)});
    pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
  }
  return pattern;
}

Tensor numbers(uint64_t seed) {
  Rng rng(seed);
  Tensor x(Shape{1, 1, length, width}, DType::f32, Device::cuda);
  fill_normal(x, 0, 1, rng);
  return x;
}

/// More tables than are kept, so that older ones are forgotten.
void fill_tables() {
  std::vector<int32_t> large(size_t{16} << 20);  // 64 MiB
  for (int32_t n = 0; n < 5; ++n) {
    large[0] = n + 1;
    constant_table<int32_t>(large, Shape{int64_t{16} << 20}, Device::cuda);
  }
}

}  // namespace

TEST_CASE("pattern: its lists leave the device with it") {
  auto pattern = gaps();
  std::vector<std::weak_ptr<Storage>> lists;
  for (const Tensor& list : kernel::plan_on_device(*pattern).lists) lists.push_back(list.storage());
  REQUIRE(lists.size() > 3);
  fill_tables();
  for (const auto& list : lists) CHECK_FALSE(list.expired());
  pattern.reset();
  for (const auto& list : lists) CHECK(list.expired());
}

TEST_CASE("pattern: a recorded step keeps the lists it reads") {
  const DefaultDevice device(Device::cuda);
  const Tensor q = numbers(1), k = numbers(2), v = numbers(3);
  const Tensor out(q.shape(), DType::f32, Device::cuda), lse(Shape{1, 1, length}, DType::f32, Device::cuda);
  auto pattern = gaps();
  const auto step = [&] {
    launch<kernel::PatternAttention>(Device::cuda, q, k, v, kernel::PatternParams{.pattern = pattern}, out,
                                     lse);
  };
  step();
  const std::vector<float> expected = out.to_host();
  std::unique_ptr<cuda::Graph> graph;
  {
    cuda::Capture capture;
    step();
    graph = capture.finish();
  }
  pattern.reset();
  fill_tables();
  release_cached();
  const Tensor over = Tensor::full(Shape{1 << 20}, NAN);  // where the lists lay if they are gone
  launch<kernel::Fill>(Device::cuda, out, 0.0);
  graph->launch();
  CHECK(out.to_host() == expected);
}
