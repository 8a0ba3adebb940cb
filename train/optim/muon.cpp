// Settings of Muon, and the Newton-Schulz iteration over runs of matrices.
#include "heed/train/optim/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/elementwise/muon_update.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The matrices of a buffer [count, stride] of a run: [count, rows, columns].
Tensor matrices_of(const Tensor& buffer, const MatrixRun& run) {
  return buffer.seen_as(Shape{run.count, run.rows, run.columns}, Strides{run.stride, run.columns, 1},
                        buffer.offset());
}

/// The first elements of a buffer, in a shape.
Tensor begin_of(const Tensor& buffer, const Shape& shape) {
  return buffer.seen_as(shape, Strides::contiguous(shape), 0);
}

}  // namespace

void MuonOptions::fields(Fields& f) {
  f("muon_momentum", momentum, "muon: decay rate of the running mean of gradients");
  f("newton_schulz_steps", newton_schulz_steps, {1, 99}, "muon: iterations that make a step orthogonal");
  f("muon_scaling", Choice(scaling, {"match_rms_adamw", "original"}),
    "muon: factor on a step by the matrix's shape; match_rms_adamw: 0.2 sqrt(max(rows, columns)), which "
    "makes the learning rate that of adamw; original: sqrt(max(1, rows / columns))");
}

void MuonOptions::check() const {
  if (!(momentum >= 0 && momentum < 1))
    fail("optimizer: muon_momentum = ", momentum, ". It must be at least 0 and below 1.");
  if (newton_schulz_steps < 1 || newton_schulz_steps > 99)
    fail("optimizer: newton_schulz_steps = ", newton_schulz_steps, ". It must be 1 to 99.");
}

NewtonSchulz::NewtonSchulz(const std::vector<MatrixRun>& runs, DType dtype, Device device) {
  int64_t elements = 0, gram_elements = 0, count = 0;
  for (const MatrixRun& run : runs) {
    const int64_t side = std::min(run.rows, run.columns);
    elements = std::max(elements, run.count * run.stride);
    gram_elements = std::max(gram_elements, run.count * side * side);
    count = std::max(count, run.count);
  }
  // Zeros, since the padding between matrices is read, and no product writes it.
  for (Tensor& matrices : matrices_) matrices = Tensor::zeros(Shape{elements}, dtype, device);
  for (Tensor& gram : grams_) gram = Tensor::zeros(Shape{gram_elements}, dtype, device);
  squares_ = Tensor::zeros(Shape{count}, DType::f64, device);
}

int64_t NewtonSchulz::bytes() const {
  if (!squares_) return 0;
  return 2 * (matrices_[0].bytes() + grams_[0].bytes()) + squares_.bytes();
}

Tensor NewtonSchulz::input(const MatrixRun& run) const {
  return begin_of(matrices_[0], Shape{run.count, run.stride});
}

Tensor NewtonSchulz::run(const MatrixRun& run, int64_t steps) const {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315, smallest_norm = 1e-7;
  const Device device = squares_.device();
  const auto product = [&](const Tensor& left, const Tensor& right, const Tensor& out, double alpha,
                           double beta) {
    launch<kernel::Gemm>(device, left, right, out, alpha, beta, Rounding::none);
  };
  Tensor now = input(run), next = begin_of(matrices_[1], now.shape());
  const Tensor squares = view::slice(squares_, 0, 0, run.count);
  for (int64_t i = 0; i < run.count; ++i)
    launch<kernel::SquareSum>(device,
                              view::slice(begin_of(now, Shape{now.size()}), 0, i * run.stride,
                                          i * run.stride + run.rows * run.columns),
                              Tensor(), view::slice(squares, 0, i, i + 1));
  launch<kernel::DivideByNorms>(device, now, squares, smallest_norm);
  const bool is_tall = run.rows > run.columns;
  const int64_t side = std::min(run.rows, run.columns);
  const Tensor gram = begin_of(grams_[0], Shape{run.count, side, side}),
               polynomial = begin_of(grams_[1], gram.shape());
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor x = matrices_of(now, run), y = matrices_of(next, run),
                 x_transposed = view::transpose(x, 1, 2);
    product(is_tall ? x_transposed : x, is_tall ? x : x_transposed, gram, 1, 0);
    launch<kernel::Copy>(device, gram, polynomial);
    product(gram, gram, polynomial, c, b);
    launch<kernel::Copy>(device, x, y);
    product(is_tall ? x : polynomial, is_tall ? polynomial : x, y, 1, a);
    std::swap(now, next);
  }
  return now;
}

double muon_scale(MuonScaling scaling, int64_t rows, int64_t columns) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  return scaling == MuonScaling::original ? std::sqrt(std::max(1.0, r / c)) : 0.2 * std::sqrt(std::max(r, c));
}

}  // namespace heed
