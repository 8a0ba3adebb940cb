// Structured attention: a map that does not depend on the input, a structured matrix plus a sparse one. Conti
// 2024, "An alternative formulation of the attention pooling function in translation", section 2.1.
//
//   y_i = sum_j w_ij v_j / sum_j |w_ij| over the keys that i may attend to,      w = |P| + clip(E, +-eps)
//
// P is a matrix per head, fixed or trained, and E a sparse one with errors of at most eps at positions drawn
// at initialisation. While no entry is negative, rows sum to 1. Zero entries of P get no gradient and stay
// zero, so when P starts as a band only the band is stored, and time and memory grow with the stored entries.
//
// Parameters: structure, P (not trained with learn=false): [H, L, 2 w + 1] for a band, where column c of row
// i is the weight of key i + c - w (w is at most L - 1, and 0 with start=diagonal), or the whole [H, L, L]
// with start=uniform; error [1, H, n, 1], the values of E (with eps > 0). Fixed draws: places [1, 1, n], i32:
// their positions in a row-major L x L matrix. L is the longest input.
#include <algorithm>

#include "heed/attention/base/banded_attention.h"
#include "heed/attention/support/host_copy.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

enum class Family { band, diagonal, uniform };

struct StructuredOptions {
  Family start = Family::band;
  int64_t width = 32;
  bool learn = true;
  double eps = 0, density = 0;
  void fields(Fields& f) {
    f("start", Choice(start, {"band", "diagonal", "uniform"}),
      "which entries of P are 1 at first; others are 0");
    f("width", width, {0, max_distance}, "w, diagonals of the band to either side");
    f("learn", learn, "train P");
    f("eps", eps, "the largest error of E; 0: there is no E");
    f("density", density, "the share of pairs that have an error; 0: one over the longest input");
  }
};

/// Sums over the keys of each query, for weights w and values v.
struct RowSums {
  Tensor values;    ///< sum_j w_ij v_j: [B, H, Tq, dv]
  Tensor absolute;  ///< sum_j |w_ij|: [1|B, H, Tq, 1]
};

class Structured final : public MultiHeadAttention {
 public:
  Structured(const AttentionConfig& config, const StructuredOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng, Project::v), max_length_(config.max_length), eps_(o.eps) {
    if (max_length_ < 1)
      fail(
          "attention 'structured': P has rows for the longest input, which is not known here. Set "
          "max_length.");
    if (!(o.eps >= 0)) fail("attention 'structured': eps = ", o.eps, ". It must be at least 0.");
    is_full_ = o.start == Family::uniform;
    if (o.start == Family::band) width_ = std::min(o.width, max_length_ - 1);
    const Shape shape{config.heads, max_length_, is_full_ ? max_length_ : 2 * width_ + 1};
    structure_ = o.learn ? constant_parameter(shape, 1) : Tensor::full(shape, 1, DType::f32);
    if (eps_ == 0) return;
    places_ = random_positions("structured", max_length_, o.density, rng);
    if (places_) error_ = constant_parameter(Shape{1, config.heads, places_.extent(2), 1}, 0);
  }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("structure", structure_);
    f("error", error_);
    f("places", places_);
  }
  std::unique_ptr<AttentionCache> new_cache() const override {
    auto cache = std::make_unique<KeyValueCache>();
    if (!is_full_ && !error_ && config().causal) cache->window = width_;
    return cache;
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias(input, "a map without scores");
    const int64_t first = read_cache(heads, input), keys = heads.v.extent(2);
    const int64_t total = input.cache != nullptr ? input.cache->length : keys;
    const KeyRange key_range{.first_query = first,
                             .queries = heads.q.extent(2),
                             .first_key = total - keys,
                             .keys = keys,
                             .causal = input.mask.is_causal()};
    check_max_length("structured", std::max(first + key_range.queries, total), max_length_);
    record_map(input, [&] {
      // Rows of the identity matrix [total, total] for the keys of this call, the last ones.
      std::vector<float> unit_rows(static_cast<size_t>(keys * total), 0.0f);
      for (int64_t j = 0; j < keys; ++j) unit_rows[static_cast<size_t>(j * total + total - keys + j)] = 1;
      const Tensor rows =
          constant_table<float>(unit_rows, Shape{1, 1, keys, total}, heads.v.device(), heads.v.dtype());
      return weighted_mean(expand(rows, Shape{heads.v.extent(0), heads.v.extent(1), keys, total}), input.mask,
                           key_range, nullptr);
    });
    return weighted_mean(heads.v, input.mask, key_range, input.context.rng);
  }

  /// y for values v [B, H, keys, dv]: weighted sums, divided by the sums of absolute weights.
  Tensor weighted_mean(const Tensor& v, const Mask& mask, const KeyRange& key_range, Rng* rng) const {
    const Tensor kept = mask.padding_mask(v, key_range.first_key);
    const Tensor values = kept ? v * kept : v;
    const Tensor present =
        kept ? expand(kept, Shape{v.extent(0), v.extent(1), key_range.keys, 1})
             : Tensor::full(Shape{1, v.extent(1), key_range.keys, 1}, 1, v.dtype(), v.device());
    const auto dropped = [&](const Tensor& w) {  // dropout differs by sequence
      if (rng == nullptr || config().dropout == 0) return w;
      Shape by_sequence = w.shape();
      by_sequence[0] = v.extent(0);
      return dropout(expand(w, by_sequence), config().dropout, rng);
    };
    RowSums sums = sums_of_structure(values, present, key_range, rng, dropped);
    if (error_ && !is_full_) add_errors(sums, values, present, key_range, dropped);
    // A short input may contain no position of E. This term makes its gradient 0 then instead of missing.
    if (error_) sums.absolute = sums.absolute + sum(error_, 2) * 0;
    return sums.values / maximum(sums.absolute, 1e-15);  // a row without keys is divided by 1e-15
  }

  /// The clipped values of E at the positions of `visible`: [1, H, m, 1].
  Tensor errors(const VisiblePositions& visible) const {
    const Tensor values = gather_rows(error_, row_indices(visible.indices, error_.device()));
    return maximum(minimum(values, eps_), -eps_);
  }

  /// The sums of P, and of E at positions where P is stored.
  template <class Dropped>
  RowSums sums_of_structure(const Tensor& values, const Tensor& present, const KeyRange& key_range, Rng* rng,
                            const Dropped& dropped) const {
    const int64_t rows = key_range.queries, columns = structure_.extent(2);
    const Shape shape{1, structure_.extent(0), rows, columns};
    Tensor w = reshape(abs(slice(structure_, 1, key_range.first_query, key_range.first_query + rows)), shape);
    const VisiblePositions visible =
        error_ ? visible_positions(*position_copy_.read(places_), max_length_, key_range,
                                   is_full_ ? max_length_ : width_, BandSide::inside)
               : VisiblePositions();
    if (!visible.indices.empty()) {
      std::vector<int32_t> entries;  // entries of the stored rows of P
      for (size_t n = 0; n < visible.indices.size(); ++n) {
        const int64_t i = key_range.first_query + visible.queries[n],
                      j = key_range.first_key + visible.keys[n];
        entries.push_back(
            static_cast<int32_t>(visible.queries[n] * columns + (is_full_ ? j : j - i + width_)));
      }
      w = w +
          reshape(scatter_add_rows(errors(visible), row_indices(entries, w.device()), rows * columns), shape);
    }
    if (is_full_) {
      w = slice(w, 3, 0, key_range.keys);
      if (key_range.causal) w = w * exp(Mask::causal().dense(w, key_range.first_query));
      return {matmul(dropped(w), values), matmul(abs(w), present)};
    }
    if (key_range.causal) {
      std::vector<uint8_t> past(static_cast<size_t>(columns), 0);
      std::fill(past.begin(), past.begin() + width_ + 1, uint8_t{1});
      w = where(constant_table<uint8_t>(past, Shape{1, 1, 1, columns}, w.device()), w, 0);
    }
    return {band_product(w, values, key_range, config().dropout, rng),
            band_product(abs(w), present, key_range)};
  }

  /// Adds the sums of E at positions where P is not stored.
  template <class Dropped>
  void add_errors(RowSums& sums, const Tensor& values, const Tensor& present, const KeyRange& key_range,
                  const Dropped& dropped) const {
    const VisiblePositions visible =
        visible_positions(*position_copy_.read(places_), max_length_, key_range, width_, BandSide::outside);
    if (visible.indices.empty()) return;
    const Tensor queries = row_indices(visible.queries, values.device()),
                 keys = row_indices(visible.keys, values.device());
    const Tensor w = errors(visible);
    sums.values =
        sums.values + scatter_add_rows(dropped(w) * gather_rows(values, keys), queries, key_range.queries);
    sums.absolute =
        sums.absolute + scatter_add_rows(abs(w) * gather_rows(present, keys), queries, key_range.queries);
  }

  int64_t max_length_, width_ = 0;
  double eps_;
  bool is_full_ = false;
  Tensor structure_, error_;  // [H, L, 2 w + 1] or [H, L, L], [1, H, n, 1]
  Tensor places_;             // [1, 1, n]
  HostCopy position_copy_;
};

}  // namespace

Variant variant::structured() {
  return describe<Structured, StructuredOptions>(
      {.name = "structured",
       .paper = "Conti 2024",
       .summary =
           "A map that does not depend on the input: a structured matrix plus a sparse one of small errors.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 0.71},  // the entries of the band do not depend on d
       .causal = true,
       .steps = true,
       .map = MapKind::signed_,
       .min_cost_length = 1024});
}

}  // namespace heed
