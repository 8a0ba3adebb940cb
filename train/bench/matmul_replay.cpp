// Replays products with kernel::Gemm.
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

/// Random operands by size and role, shared by equal products.
class Numbers {
 public:
  Tensor at(int64_t batch, int64_t rows, int64_t columns, bool turned, int64_t role,
            DType dtype = DType::f32) {
    const Shape shape = turned ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
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
    return turned ? view::transpose(x, 1, 2) : x;
  }

 private:
  std::map<std::tuple<int64_t, int64_t, DType>, Tensor> known_;
  Rng rng_{1};
};

/// How to replay a product: parallel pieces, calls per piece, matrices per call.
struct Split {
  int64_t pieces, times, abreast;
};

Split split(const Product& p) {
  constexpr int64_t cached = int64_t{128} << 10, small = 8'000'000;
  const int64_t each = 4 * (p.m * p.k + p.k * p.n + p.m * p.n), pieces = 4 * threads();
  if (default_device != Device::cpu || p.batch < 4 * pieces || p.flops() / p.batch > small)
    return {1, 1, p.batch};
  const int64_t share = (p.batch + pieces - 1) / pieces;
  Split best{pieces, share, 1};
  for (int64_t abreast = 2; abreast <= std::min<int64_t>({share, cached / each, 8}); ++abreast) {
    const int64_t times = (share + abreast - 1) / abreast;
    if (times * abreast <= best.times * best.abreast) best = {pieces, times, abreast};
  }
  return best;
}

}  // namespace

ProductReplay::ProductReplay(std::span<const Product> products) {
  Numbers numbers;
  for (const Product& p : products) {
    const Split how = split(p);
    Work work{{}, p.accumulates ? 1.0 : 0.0, how.times, p.rounding};
    // On a GPU the factors were rounded before.
    const bool narrow = default_device != Device::cpu && p.rounding == Rounding::bf16;
    const DType factors = narrow ? DType::bf16 : DType::f32;
    for (int64_t piece = 0; piece < how.pieces; ++piece) {
      work.pieces.push_back({numbers.at(how.abreast, p.m, p.k, p.a_transposed, 3 * piece, factors),
                             numbers.at(how.abreast, p.k, p.n, p.b_transposed, 3 * piece + 1, factors),
                             numbers.at(how.abreast, p.m, p.n, false, 3 * piece + 2)});
    }
    work_.push_back(std::move(work));
  }
}

void ProductReplay::once() const {
  if (default_device != Device::cpu) {
    for (const Work& work : work_) {
      const Work::Operands& x = work.pieces[0];
      launch<kernel::Gemm>(default_device, x.a, x.b, x.c, 1.0, work.beta, work.rounding);
    }
    return;
  }
  for (const Work& work : work_) {
    parallel_for(static_cast<int64_t>(work.pieces.size()), [&](int64_t piece) {
      const Work::Operands& x = work.pieces[static_cast<size_t>(piece)];
      for (int64_t i = 0; i < work.times; ++i)
        launch<kernel::Gemm>(Device::cpu, x.a, x.b, x.c, 1.0, work.beta, work.rounding);
    });
  }
}

}  // namespace heed::bench
