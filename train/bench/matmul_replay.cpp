// Replays matrix products with kernel::Gemm.
#include "heed/train/bench/matmul_replay.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/gemm/gemm.h"
#include "heed/core/launch.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/core/random.h"

namespace heed::bench {
namespace {

/// Random operands by size, role and type: products of equal sizes share them.
class RandomOperands {
 public:
  Tensor at(int64_t batch, int64_t rows, int64_t columns, bool is_transposed, int64_t role,
            DType dtype = DType::f32) {
    const Shape shape = is_transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
    Tensor& kept = known_[{shape.size(), role, dtype}];
    if (!kept) {
      kept = Tensor(Shape{shape.size()});
      fill_normal(kept, 0, 1, rng_);
      if (dtype != DType::f32) {
        const Tensor narrow(kept.shape(), dtype);
        launch<kernel::Copy>(default_device, kept, narrow);
        kept = narrow;
      }
    }
    const Tensor x = view::reshape(kept, shape);
    return is_transposed ? view::transpose(x, 1, 2) : x;
  }

 private:
  std::map<std::tuple<int64_t, int64_t, DType>, Tensor> known_;
  Rng rng_{1};
};

/// The split of a batch of matrices: pieces that run in parallel, calls of each piece, matrices of each call.
struct Split {
  int64_t pieces, num_calls, matrices;
};

/// Splits many small products among threads, with the calls that compute fewest matrices in excess; others
/// are one call.
Split split(const Product& p) {
  constexpr int64_t cache_bytes = int64_t{128} << 10, max_small_flops = 8'000'000;
  const int64_t bytes_each = 4 * (p.m * p.k + p.k * p.n + p.m * p.n), pieces = 4 * threads();
  if (default_device != Device::cpu || p.batch < 4 * pieces || p.flops() / p.batch > max_small_flops)
    return {1, 1, p.batch};
  const int64_t share = (p.batch + pieces - 1) / pieces;
  Split best{pieces, share, 1};
  for (int64_t matrices = 2; matrices <= std::min<int64_t>({share, cache_bytes / bytes_each, 8});
       ++matrices) {
    const int64_t num_calls = (share + matrices - 1) / matrices;
    if (num_calls * matrices <= best.num_calls * best.matrices) best = {pieces, num_calls, matrices};
  }
  return best;
}

}  // namespace

ProductReplay::ProductReplay(std::span<const Product> products) {
  RandomOperands operands;
  for (const Product& p : products) {
    const Split how = split(p);
    Replayed replayed{
        .pieces = {}, .beta = p.accumulates ? 1.0 : 0.0, .num_calls = how.num_calls, .rounding = p.rounding};
    // Factors in bf16 need no rounding.
    const DType factors = p.rounding == Rounding::bf16 ? DType::bf16 : DType::f32;
    for (int64_t piece = 0; piece < how.pieces; ++piece) {
      replayed.pieces.push_back({operands.at(how.matrices, p.m, p.k, p.a_transposed, 3 * piece, factors),
                                 operands.at(how.matrices, p.k, p.n, p.b_transposed, 3 * piece + 1, factors),
                                 operands.at(how.matrices, p.m, p.n, false, 3 * piece + 2)});
    }
    products_.push_back(std::move(replayed));
  }
}

void ProductReplay::once() const {
  if (default_device != Device::cpu) {
    for (const Replayed& product : products_) {
      const Replayed::Operands& x = product.pieces[0];
      launch<kernel::Gemm>(default_device, x.a, x.b, x.c, 1.0, product.beta, product.rounding);
    }
    return;
  }
  for (const Replayed& product : products_) {
    parallel_for(static_cast<int64_t>(product.pieces.size()), [&](int64_t piece) {
      const Replayed::Operands& x = product.pieces[static_cast<size_t>(piece)];
      for (int64_t i = 0; i < product.num_calls; ++i)
        launch<kernel::Gemm>(Device::cpu, x.a, x.b, x.c, 1.0, product.beta, product.rounding);
    });
  }
}

}  // namespace heed::bench
