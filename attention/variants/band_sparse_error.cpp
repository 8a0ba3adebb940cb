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
#include "heed/attention/base/banded_attention.h"
#include "heed/attention/support/host_copy.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct BandSparseErrorOptions {
  int64_t width = 32;
  double eps = 0.1, density = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("width", width, {0, max_distance}, "w, diagonals to either side that are kept");
    f("eps", eps, "largest weight outside the band");
    f("density", density, "the share of pairs that may have such an entry; 0: one over the longest input");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BandSparseError final : public BandedAttention {
 public:
  BandSparseError(const AttentionConfig& config, const BandSparseErrorOptions& o, Rng& rng)
      : BandedAttention(config, rng, o.width, o.scale), eps_(o.eps), max_length_(config.max_length) {
    if (!(o.eps >= 0)) fail("attention 'band_sparse_error': eps = ", o.eps, ". It must be at least 0.");
    places_ = random_positions("band_sparse_error", max_length_, o.density, rng);
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
    check_max_length("band_sparse_error", std::max(first + queries, keys), max_length_);
    const Tensor map = softmax(scores), band = where(band_mask(scores, first, band_width()), map, 0);
    if (!places_) return band;
    const Tensor ones = Tensor::full(Shape{1, 1, places_.extent(2), 1}, 1, scores.dtype(), scores.device());
    const Tensor S =
        reshape(scatter_add_rows(ones, places_, max_length_ * max_length_), Shape{max_length_, max_length_});
    const Tensor S_of_call = slice(slice(S, 0, first, first + queries), 1, 0, keys);
    return band + where(outside_band_mask(scores, first, band_width()), clipped(map) * S_of_call, 0);
  }

  Tensor outside_term(const Heads& heads, const Tensor& lse, const AttentionInput& input,
                      const KeyRange& key_range) const override {
    check_max_length("band_sparse_error", std::max(key_range.first_query + key_range.queries, key_range.keys),
                     max_length_);
    const VisiblePositions visible = visible_positions(*position_copy_.read(places_), max_length_, key_range,
                                                       band_width(), BandSide::outside);
    if (visible.indices.empty()) return {};
    const Tensor queries = row_indices(visible.queries, lse.device()),
                 keys = row_indices(visible.keys, lse.device());
    const Tensor products = sum(gather_rows(heads.q, queries) * gather_rows(heads.k, keys), 3);
    // relu keeps weights at most 1 when huge scores are rounded.
    Tensor log_weights = -relu(gather_rows(lse, queries) - products * scale(heads.q));  // [B, H, m, 1]
    if (const Tensor kept = input.mask.padding_mask(heads.k, 0))
      log_weights = log_weights + gather_rows(affine(kept, 1e30, -1e30), keys);
    const Tensor weights = dropout(clipped(exp(log_weights)), config().dropout, input.context.rng);
    return scatter_add_rows(weights * gather_rows(heads.v, keys), queries, key_range.queries);
  }

  double eps_;
  int64_t max_length_;
  Tensor places_;  // [1, 1, n]
  HostCopy position_copy_;
};

}  // namespace

Variant variant::band_sparse_error() {
  return describe<BandSparseError, BandSparseErrorOptions>(like(
      dot_product_traits,
      {.name = "band_sparse_error",
       .paper = "Conti 2024",
       .summary = "The band of the map of softmax, and small errors at a few positions outside it.",
       .time = {.length = 2, .width = 0.87},  // the column of sums is padded to whole vectors at any width
       .map = MapKind::signed_,
       .min_cost_length = 1024}));
}

}  // namespace heed
