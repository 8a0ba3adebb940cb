// Position encodings added to embeddings.
#include "heed/nn/position.h"

#include <cmath>

#include "heed/autograd/ops.h"
#include "heed/nn/init.h"

namespace heed {

namespace {

/// The sinusoids of one position: out [width]. Feature i of the interleaved order is a sine for even i, else
/// the cosine of the same angle.
void put_sinusoids(int64_t position, int64_t width, PositionKind kind, float* out) {
  for (int64_t i = 0; i < width; ++i) {
    const double rate =
        std::exp(-static_cast<double>(i / 2 * 2) * std::log(10000.0) / static_cast<double>(width));
    const double angle = static_cast<double>(position) * rate;
    const int64_t in_halves = i % 2 * ((width + 1) / 2) + i / 2;
    out[kind == PositionKind::sinusoid_halves ? in_halves : i] =
        static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
}

}  // namespace

Position::Position(PositionKind kind, int64_t max_length, int64_t width, Rng& rng, double deviation)
    : kind_(kind) {
  if (kind == PositionKind::learned) table_ = normal_parameter(Shape{max_length, width}, deviation, rng);
  if (is_sinusoidal(kind)) {
    table_ = Tensor(Shape{max_length, width}, DType::f32, Device::cpu);
    for (int64_t t = 0; t < max_length; ++t) put_sinusoids(t, width, kind, table_.data<float>() + t * width);
    table_ = table_.to(default_device);
  }
}

void Position::check_length(int64_t end) const {
  if (end > table_.extent(0)) {
    fail("position: ", end, " tokens, but positions were made for ", table_.extent(0),
         "; raise max-length or shorten the input.");
  }
}

Tensor Position::operator()(const Tensor& x, int64_t first) const {
  if (!table_) return x;
  const ModuleScope within(this);
  const int64_t last = first + x.extent(1);
  check_length(last);
  return x + cast(slice(table_, 0, first, last), x.dtype());
}

Tensor Position::at(const Tensor& x, const Tensor& positions) const {
  if (!table_) return x;
  const ModuleScope within(this);
  return x + cast(embedding(table_, positions), x.dtype());
}

Tensor Position::at(const Tensor& x, const Packing& packing) const {
  if (!table_) return x;
  const ModuleScope within(this);
  check_length(packing.sequences.longest);
  const Tensor table = x.dtype() == DType::bf16 ? table_ : cast(table_, x.dtype());
  return add_positions(x, table, packing.sequences);
}

void Position::fields(Fields& f) {
  // Sinusoids follow from the configuration, so only a trained table is saved with the model.
  if (kind_ == PositionKind::learned)
    f("table", table_);
  else
    f.constant("waves", table_);
}

}  // namespace heed
