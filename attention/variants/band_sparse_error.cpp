// Band and sparse error: the band of the softmax map, plus bounded weights at a few random positions. Conti
// 2024, "An alternative formulation of the attention pooling function in translation", section 2.1.
//
//   A~ = B + clip(A - B, +-eps) o S,      A = softmax(q k^T / sqrt(d)),      B = A o 1[|i-j| <= w]
//
// Among the matrices with w diagonals on either side and errors of at most eps at the positions of S, a 0-1
// matrix, this is the nearest to the map A. S has a share `density` of all pairs, drawn at initialisation: by
// default one per row on average, as in the thesis; none on the diagonal. A divides by the sum over all keys,
// so time is quadratic in the length; memory grows with the kept entries.
//
// Fixed draws: places [1, 1, n], i32: the positions of the ones of S in a row-major L x L matrix, L the
// longest input; shared by the heads.
#include <cmath>

#include "heed/attention/base/banded.h"
#include "heed/attention/support/host_copies.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct BandSparseErrorOptions {
  int64_t width = 32;
  double eps = 0.1, density = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, {0, max_distance}, "w, diagonals to either side that are kept");
    f("eps", eps, "what an entry outside the band may weigh at most");
    f("density", density, "the share of pairs that may have such an entry; 0: one over the longest input");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandSparseError final : public BandedAttention {
 public:
  BandSparseError(const AttentionConfig& config, const BandSparseErrorOptions& o, Rng& rng)
      : BandedAttention(config, rng, o.width, o.scale), eps_(o.eps), longest_(config.max_length) {
    if (!(o.eps >= 0)) fail("attention 'band_sparse_error': eps = ", o.eps, ". It must be at least 0.");
    places_ = sparse_places("band_sparse_error", longest_, o.density, rng);
  }
  void fields(Fields& f) override {
    BandedAttention::fields(f);
    f("places", places_);
  }

 private:
  /// Clips weights at eps; they are never negative.
  Tensor clipped(const Tensor& map) const { return minimum(map, eps_); }

  Tensor weigh(const Tensor& scores, const Tensor&, const AttentionInput& input) const override {
    const int64_t first = first_position(scores, input), queries = scores.extent(2), keys = scores.extent(3);
    check_longest("band_sparse_error", std::max(first + queries, keys), longest_);
    const Tensor map = softmax(scores), band = where(band_of(scores, first, band_width()), map, 0);
    if (!places_) return band;
    const Tensor ones = Tensor::full(Shape{1, 1, places_.extent(2), 1}, 1, scores.dtype(), scores.device());
    const Tensor support =
        reshape(scatter_add_rows(ones, places_, longest_ * longest_), Shape{longest_, longest_});
    const Tensor seen = slice(slice(support, 0, first, first + queries), 1, 0, keys);
    return band + where(outside_band(scores, first, band_width()), clipped(map) * seen, 0);
  }

  Tensor elsewhere(const Heads& heads, const Tensor& lse, const AttentionInput& input,
                   const KeyRange& key_range) const override {
    check_longest("band_sparse_error", std::max(key_range.first_query + key_range.queries, key_range.keys),
                  longest_);
    const SeenPlaces seen = seen_places(*known_places_.of(places_), longest_, key_range, band_width(), false);
    if (seen.which.empty()) return {};
    const Tensor queries = row_ids(seen.queries, lse.device()), keys = row_ids(seen.keys, lse.device());
    const Tensor products = sum(gather_rows(heads.q, queries) * gather_rows(heads.k, keys), 3);
    // relu keeps weights at most 1 when huge scores are rounded.
    Tensor logs = -relu(gather_rows(lse, queries) - products * scale(heads.q));  // [B, H, m, 1]
    if (const Tensor kept = input.mask.padding_mask(heads.k, 0))
      logs = logs + gather_rows(affine(kept, 1e30, -1e30), keys);
    const Tensor map = dropout(clipped(exp(logs)), config().dropout, input.context.rng);
    return scatter_add_rows(map * gather_rows(heads.v, keys), queries, key_range.queries);
  }

  double eps_;
  int64_t longest_;
  Tensor places_;  // [1, 1, n]
  KnownNumbers known_places_;
};

}  // namespace

Variant variant::band_sparse_error() {
  return describe<BandSparseError, BandSparseErrorOptions>(
      {.name = "band_sparse_error",
       .paper = "Conti 2024",
       .idea = "The band of the map of softmax, and small errors at a few places elsewhere.",
       .time = {.length = 2, .width = 0.87},  // the column of sums is padded to whole vectors at any width
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed
