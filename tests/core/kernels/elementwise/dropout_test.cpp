// Dropout against the random bits that define it.
#include "heed/core/kernels/elementwise/dropout.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"

#include <algorithm>

#include "heed/tests/core/kernels/tensors_on_device.h"
#include "heed/tests/core/numbers.h"

using namespace heed;

namespace {

Draw draw_of(uint64_t seed, uint64_t stream, int64_t tick) {
  return {seed, stream, Tensor::full(Shape{1}, static_cast<double>(tick), DType::i64)};
}

Tensor dropped(const Tensor& x, double p, const Draw& draw) {
  Tensor y = empty_like(x);
  launch_here<kernel::Dropout>(x, kernel::DropoutMask{.p = p, .draw = draw}, y);
  return y;
}

/// Packed rows [1, 3, width] of two sequences, or rows [3, width].
struct Rows {
  Shape shape;
  kernel::DropoutMask mask;
  Rows(int64_t width, bool packed)
      : shape(packed ? Shape{1, 3, width} : Shape{3, width}), mask{.p = 0.3, .draw = draw_of(5, 6, 7)} {
    if (packed) mask.places = {Tensor::of<int32_t>(std::vector<int32_t>{0, 4, 5}, Shape{3}), 8};
  }
};

/// The bits of the CPU are those of the parts; a device may fuse multiplications and additions.
void check_parts(const Tensor& fused, const Tensor& parts) {
  if (device_here() == Device::cpu) CHECK(same_bits(fused, parts));
  CHECK(distance(fused, parts) < tolerance(fused.dtype()));
}

template <class F>
void check_activation(DType dtype, const Rows& rows) {
  const Tensor x = random_tensor(rows.shape, dtype, 1, -4, 4), dy = random_tensor(rows.shape, dtype, 2);
  const Tensor parts = empty_like(x), whole = empty_like(x), fused = empty_like(x);
  launch_here<kernel::Map<F>>(x, whole);
  launch_here<kernel::Dropout>(whole, rows.mask, parts);
  launch_here<kernel::ActivationDropout<F>>(x, rows.mask, fused);
  check_parts(fused, parts);
  launch_here<kernel::Dropout>(dy, rows.mask, whole);
  launch_here<kernel::MapBack<F>>(x, x, whole, parts);
  launch_here<kernel::ActivationDropoutBack<F>>(x, dy, rows.mask, fused);
  check_parts(fused, parts);
}

}  // namespace

TEST_CASE("dropout: fused with activations and sums, it gives what its parts give") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t width = GENERATE(1, 15, 16, 100, 4099);
  const Rows rows(width, GENERATE(false, true));
  check_activation<Relu>(dtype, rows);
  check_activation<Gelu>(dtype, rows);
  check_activation<GeluTanh>(dtype, rows);
  check_activation<Silu>(dtype, rows);
  const Tensor x = random_tensor(rows.shape, dtype, 1), branch = random_tensor(rows.shape, dtype, 2);
  const Tensor parts = empty_like(x), whole = empty_like(x), fused = empty_like(x);
  launch_here<kernel::Dropout>(branch, rows.mask, whole);
  launch_here<kernel::Zip<Add>>(x, whole, parts);
  launch_here<kernel::AddDropout>(x, branch, rows.mask, fused);
  check_parts(fused, parts);
}

TEST_CASE("dropout: activations of bf16 are computed in f32 and rounded once") {
  const OnEachDevice here;
  const Rows rows(GENERATE(15, 100, 4099), GENERATE(false, true));
  const Tensor x = random_tensor(rows.shape, DType::bf16, 1, -4, 4),
               dy = random_tensor(rows.shape, DType::bf16, 2);
  const auto as = [](DType dtype, const Tensor& from) {
    const Tensor to(from.shape(), dtype);
    launch<kernel::Copy>(Device::cpu, from, to);
    return to;
  };
  const auto check = [&]<class K>(Type<K>, const auto&... inputs) {
    const Tensor exact(rows.shape), rounded(rows.shape, DType::bf16);
    launch_here<K>(as(DType::f32, inputs)..., rows.mask, exact);
    launch_here<K>(inputs..., rows.mask, rounded);
    CHECK(same_bits(rounded, as(DType::bf16, exact)));
  };
  check(Type<kernel::Dropout>{}, x);
  check(Type<kernel::AddDropout>{}, x, dy);
  check(Type<kernel::ActivationDropout<Gelu>>{}, x);
  check(Type<kernel::ActivationDropoutBack<Gelu>>{}, x, dy);
}

TEST_CASE("dropout: every element follows its own bits") {
  const OnEachDevice here;
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const int64_t size = GENERATE(1, 7, 8, 127, 128, 129, 20000, 50001);
  const double p = GENERATE(0.0, 0.1, 0.5, 1.0);
  const Draw draw = draw_of(0x123456789abcdefULL, 77, 5);
  const Tensor x = random_tensor(Shape{size}, dtype);
  const uint64_t high = Draw::high(77, 5);
  std::vector<double> wanted = x.to_doubles();
  const double threshold = std::round(p * 65536);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool kept = kernel::dropout_bits(draw.seed, high, i) >= threshold;
    wanted[i] = kept ? wanted[i] / (1 - threshold / 65536) : 0;
  }
  CHECK(distance(dropped(x, p, draw), wanted) < (dtype == DType::f64 ? 1e-15 : 1e-6));
}

TEST_CASE("dropout: the share dropped, and other ticks, streams and seeds drop others") {
  const OnEachDevice here;
  const Tensor x = Tensor::full(Shape{100000}, 1);
  const auto pattern = [&](uint64_t seed, uint64_t stream, int64_t tick) {
    return dropped(x, 0.3, draw_of(seed, stream, tick)).to_host();
  };
  const auto first = pattern(1, 0, 0);
  const auto zeros = std::count(first.begin(), first.end(), 0.F);
  CHECK(std::abs(static_cast<double>(zeros) - 30000) < 600);  // four deviations
  for (const auto& other : {pattern(2, 0, 0), pattern(1, 1, 0), pattern(1, 0, 1)}) {
    int64_t both = 0;
    for (size_t i = 0; i < first.size(); ++i) both += first[i] == 0 && other[i] == 0 ? 1 : 0;
    CHECK(std::abs(static_cast<double>(both) - 9000) < 400);
  }
  CHECK(pattern(1, 0, 0) == first);
}

TEST_CASE("dropout: the same bits for any number of threads, NaN stays hidden where it is dropped") {
  const OnEachDevice here;
  const Tensor x = random_tensor(Shape{300, 333});
  CHECK(same_for_any_threads([&] { return dropped(x, 0.2, draw_of(3, 2, 1)); }));
  CHECK(same_for_any_threads([&] {
    const Tensor y = empty_like(x);
    launch_here<kernel::AddDropout>(x, x, kernel::DropoutMask{.p = 0.2, .draw = draw_of(3, 2, 1)}, y);
    return y;
  }));
  const auto out = dropped(Tensor::full(Shape{1000}, std::nan("")), 0.5, draw_of(3, 2, 1)).to_host();
  const auto zeros = std::count(out.begin(), out.end(), 0.F);
  CHECK(zeros > 400);
  CHECK(zeros < 600);
}

TEST_CASE("dropout: both bytes of the 16 bits are uniform, and elements of a block fall independently") {
  constexpr uint64_t count = 1 << 20;
  std::vector<uint32_t> bits;
  for (uint64_t i = 0; i < count; ++i) bits.push_back(kernel::dropout_bits(11, Draw::high(4, 9), i));
  // Squared deviations of 256 counts from `mean`, in units of it: 255 on average, deviation 22.6.
  const auto chi_square = [](const std::vector<int64_t>& counts, double mean) {
    double sum = 0;
    for (const int64_t n : counts) sum += (static_cast<double>(n) - mean) * (static_cast<double>(n) - mean);
    return sum / mean;
  };
  std::vector<int64_t> first(256), second(256), tied(256);
  int64_t ties = 0;
  for (const uint32_t own : bits) {
    ++first[own >> 8];
    ++second[own & 0xffU];
    if (own >> 8 >= 16 && own >> 8 < 32) ++tied[own & 0xffU], ++ties;
  }
  CHECK(chi_square(first, count / 256.0) < 255 + 4.5 * 22.6);
  CHECK(chi_square(second, count / 256.0) < 255 + 4.5 * 22.6);
  CHECK(chi_square(tied, static_cast<double>(ties) / 256) < 255 + 4.5 * 22.6);
  for (const uint64_t lag : {1, 2, 3, 5, 15, 16, 17, 64, 4096}) {
    INFO("elements " << lag << " apart");
    double both = 0;
    for (uint64_t i = 0; i + lag < count; ++i) both += bits[i] < 6554 && bits[i + lag] < 6554 ? 1 : 0;
    const double share = (6554.0 / 65536) * (6554.0 / 65536);
    CHECK(std::abs(both - share * count) < 4.5 * std::sqrt(share * count));
  }
}
