// Band and sparse error. Conti 2024, "Attention maps as a sum of a structured and a sparse matrix".
//
//   A~ = B + clip(A - B, +-eps) o S,      A = softmax(q k^T / sqrt(d)),   B = A o 1[|i-j| <= w],   S in {0,
//   1}
//
// The member nearest to the map A among the matrices with a band of w diagonals to either side and errors of
// at most eps at the places of S. S holds a share `density` of all pairs, drawn when it is made, one a row on
// average as the thesis draws them; no pair of the diagonal is in it. A divides by the sum over all keys, so
// time goes with pairs; memory goes with what is kept.
//
// Fixed draws: places [1, 1, n], i32, where the ones of S stand in a row-major L x L matrix, L the longest
// input; shared by the heads.
#include <cmath>

#include "attention/banded.h"
#include "attention/known_numbers.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
  int64_t width = 32;
  double eps = 0.1, density = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, "w, diagonals to either side that are kept");
    f("eps", eps, "what an entry outside the band may weigh at most");
    f("density", density, "the share of pairs that may have such an entry; 0: one over the longest input");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandSparseError final : public BandedAttention {
 public:
  BandSparseError(const AttentionConfig& config, const Options& o, Rng& rng)
      : BandedAttention(config, rng, o.width, o.scale), eps_(o.eps), longest_(config.max_length) {
    if (o.width < 0) fail("attention 'band_sparse_error': width = ", o.width, ". It must be at least 0.");
    if (!(o.eps >= 0)) fail("attention 'band_sparse_error': eps = ", o.eps, ". It must be at least 0.");
    places_ = sparse_places("band_sparse_error", longest_, o.density, rng);
  }
  void fields(Fields& f) override {
    BandedAttention::fields(f);
    f("places", places_);
  }

 private:
  /// Weights are not negative: only their excess over eps is cut.
  Tensor clipped(const Tensor& map) const { return minimum(map, eps_); }

  Tensor weigh(const Tensor& scores, const Tensor&, const Attend& call) const override {
    const int64_t first = first_position(scores, call), queries = scores.extent(2), keys = scores.extent(3);
    check_longest("band_sparse_error", std::max(first + queries, keys), longest_);
    const Tensor map = softmax(scores), band = select(band_of(scores, first, band_width()), map, 0);
    if (!places_) return band;
    const Tensor ones = Tensor::full(Shape{1, 1, places_.extent(2), 1}, 1, scores.dtype(), scores.device());
    const Tensor support = reshape(put_rows(ones, places_, longest_ * longest_), Shape{longest_, longest_});
    const Tensor seen = slice(slice(support, 0, first, first + queries), 1, 0, keys);
    return band + select(outside_band(scores, first, band_width()), clipped(map) * seen, 0);
  }

  Tensor elsewhere(const Heads& heads, const Tensor& lse, const Attend& call,
                   const Sight& sight) const override {
    check_longest("band_sparse_error", std::max(sight.first_query + sight.queries, sight.keys), longest_);
    const SeenPlaces seen = seen_places(known_places_.of(places_), longest_, sight, band_width(), false);
    if (seen.which.empty()) return {};
    const Tensor queries = row_ids(seen.queries, lse.device()), keys = row_ids(seen.keys, lse.device());
    const Tensor products = sum(take_rows(heads.q, queries) * take_rows(heads.k, keys), 3);
    // No weight is above one, also where rounding of huge scores says so.
    Tensor logs = -relu(take_rows(lse, queries) - products * scale(heads.q));  // [B, H, m, 1]
    if (const Tensor kept = call.mask.kept(heads.k, 0))
      logs = logs + take_rows(affine(kept, 1e30, -1e30), keys);
    const Tensor map = dropout(clipped(exp(logs)), config().dropout, call.pass.noise);
    return put_rows(map * take_rows(heads.v, keys), queries, sight.queries);
  }

  double eps_;
  int64_t longest_;
  Tensor places_;  // [1, 1, n]
  KnownNumbers known_places_;
};

}  // namespace

Variant variant::band_sparse_error() {
  return describe<BandSparseError, Options>(
      {.name = "band_sparse_error",
       .paper = "Conti 2024",
       .idea = "The band of the map of softmax, and small errors at a few places elsewhere.",
       .time = {.length = 2,
                .width = 0.87},  // vectors that the one column of sums fills up do not know the width
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed
