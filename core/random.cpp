// The state of random numbers.
#include "heed/core/random.h"

#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/elementwise/random.h"

namespace heed {
namespace {

void refuse_in_capture() {
  if constexpr (built_with_cuda) {
    if (cuda::is_open())
      cuda::refuse_capture("what a random number of the host, or the number of the step, leads to");
  }
}

}  // namespace

Rng::Rng(uint64_t seed, Device device) : seed_(seed), tick_(Tensor::zeros(Shape{1}, DType::i64, device)) {}

Draw Rng::next() { return {seed_, draws_++, tick_}; }

void Rng::advance() {
  draws_ = 0;
  ++tick_host_;
  launch<kernel::Advance>(tick_.device(), tick_);
}

int64_t Rng::tick() const {
  refuse_in_capture();
  return tick_host_;
}

double Rng::uniform() {
  refuse_in_capture();
  const Philox bits = Philox::at(seed_, 0, Draw::high(draws_++, tick_host_));
  return static_cast<double>(((uint64_t{bits.word[0]} << 32) | bits.word[1]) >> 11) * 0x1p-53;
}

int64_t Rng::below(int64_t count) {
  if (count < 1) fail("random: below(", count, ") has nothing to choose from.");
  return static_cast<int64_t>(uniform() * static_cast<double>(count));
}

void Rng::restore(int64_t tick, int64_t draws) {
  tick_host_ = tick;
  draws_ = static_cast<uint64_t>(draws);
  launch<kernel::Fill>(tick_.device(), tick_, static_cast<double>(tick));
}

namespace {

/// Fails for a view with gaps, which random numbers would fill in other places; marks x as changed.
void note_filled(const char* name, const Tensor& x) {
  if (!x.contiguous())
    fail(name, ": x ", x.shape(), " is a view with gaps. Fill a tensor of its own, and copy_() it there.");
  ++x.storage()->version;
}

}  // namespace

void fill_normal(const Tensor& x, double mean, double deviation, Rng& rng) {
  note_filled("fill_normal", x);
  launch<kernel::FillNormal>(x.device(), x, mean, deviation, rng.next());
}

void fill_uniform(const Tensor& x, double low, double high, Rng& rng) {
  note_filled("fill_uniform", x);
  launch<kernel::FillUniform>(x.device(), x, low, high, rng.next());
}

}  // namespace heed
