// Band and sparse error. Conti 2024, "Attention maps as a sum of a structured and a sparse matrix".
//
//   A~ = B + clip(A - B, +-eps) o S,      A = softmax(q k^T / sqrt(d)),   B = A o 1[|i-j| <= w],   S in {0,
//   1}
//
// The member nearest to the map A among the matrices with a band of w diagonals to either side and errors of
// at most eps at the places of S. S holds a share `density` of all pairs, drawn when it is made; no pair of
// the diagonal is in it.
//
// Fixed draws: places [1, 1, n], i32, where the ones of S stand in a row-major L x L matrix, L the longest
// input; shared by the heads.
#include <cmath>

#include "attention/banded.h"
#include "attention/scored.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  int64_t width = 32;
  double eps = 0.1, density = 0.01;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, "w, diagonals to either side that are kept");
    f("eps", eps, "what an entry outside the band may weigh at most");
    f("density", density, "the share of pairs that may have such an entry; 0: one over the longest input");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandSparseError final : public ScoredAttention {
 public:
  BandSparseError(const AttentionConfig& config, const Options& o, Rng& rng)
      : ScoredAttention(config, rng), o_(o), longest_(config.max_length) {
    if (o.width < 0) fail("attention 'band_sparse_error': width = ", o.width, ". It must be at least 0.");
    if (!(o.eps >= 0)) fail("attention 'band_sparse_error': eps = ", o.eps, ". It must be at least 0.");
    places_ = sparse_places("band_sparse_error", longest_, o.density, rng);
  }
  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    f("places", places_);
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const Attend&) const override {
    const double scale = o_.scale != 0 ? o_.scale : 1 / std::sqrt(static_cast<double>(q.extent(3)));
    return matmul(q, transpose(k, 2, 3)) * scale;
  }

  Tensor weigh(const Tensor& scores, const Tensor&, const Attend& call) const override {
    const int64_t first = first_position(scores, call), queries = scores.extent(2), keys = scores.extent(3);
    check_longest("band_sparse_error", std::max(first + queries, keys), longest_);
    const Tensor map = softmax(scores), band = select(band_of(scores, first, o_.width), map, 0);
    if (!places_) return band;
    // Weights are not negative: only their excess over eps is cut.
    const Tensor clipped = map - relu(map - o_.eps);
    const Tensor ones = Tensor::full(Shape{1, 1, places_.extent(2), 1}, 1, scores.dtype(), scores.device());
    const Tensor support = reshape(put_rows(ones, places_, longest_ * longest_), Shape{longest_, longest_});
    const Tensor seen = slice(slice(support, 0, first, first + queries), 1, 0, keys);
    return band + select(outside_band(scores, first, o_.width), clipped * seen, 0);
  }

  Options o_;
  int64_t longest_;
  Tensor places_;  // [1, 1, n]
};

}  // namespace

Variant variant::band_sparse_error() {
  return describe<BandSparseError, Options>(
      {.name = "band_sparse_error",
       .paper = "Conti 2024",
       .idea = "The band of the map of softmax, and small errors at a few places elsewhere.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 2, .width = 0},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed
