// Structured and sparse. Conti 2024, "Attention maps as a sum of a structured and a sparse matrix",
// section 3.
//
//   y_i = sum_j w_ij v_j / sum_j |w_ij| over the keys that i may see,      w = |P| + clip(E, +-eps)
//
// The map does not look at the input: P is a matrix of its own for each head, fixed or trained, and E a
// sparse one with errors of at most eps at places drawn when it is made. While no entry is negative its rows
// sum to one. Entries of P that are zero have no slope and stay zero, so a band is all that is kept of P
// where it starts as one: time and memory go with what is kept.
//
// Parameters: structure, P (no leaf with learn=false): [H, L, 2 w + 1] of a band, whose column c of row i
// weighs key i + c - w (w is at most L - 1, and 0 with start=diagonal), or the whole [H, L, L] with
// start=uniform; error [1, H, n, 1], the values of E (with eps > 0). Fixed draws: places [1, 1, n], i32,
// where in a row-major L x L matrix they stand. L is the longest input.
#include <algorithm>
#include <cmath>

#include "attention/banded.h"
#include "attention/known_numbers.h"
#include "attention/variant.h"
#include "core/table.h"

namespace heed {
namespace {

enum class Start { band, diagonal, uniform };

struct Options {
  Start start = Start::band;
  int64_t width = 32;
  bool learn = true;
  double eps = 0, density = 0;
  void fields(Fields& f) {
    f("start", Choice(start, {"band", "diagonal", "uniform"}),
      "which entries of P are 1 at first; others are 0");
    f("width", width, "w, diagonals of the band to either side");
    f("learn", learn, "train P");
    f("eps", eps, "the largest error of E; 0: there is no E");
    f("density", density, "the share of pairs that have an error; 0: one over the longest input");
  }
};

/// w times values, and |w| times ones.
struct Sums {
  Tensor values, sizes;  ///< [B, H, Tq, dv], [1|B, H, Tq, 1]
};

class Structured final : public HeadedAttention {
 public:
  Structured(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng, Project::v), longest_(config.max_length), eps_(o.eps) {
    if (longest_ < 1)
      fail(
          "attention 'structured': P is made for the longest input, which is not known here. Set "
          "max_length.");
    if (o.width < 0) fail("attention 'structured': width = ", o.width, ". It must be at least 0.");
    if (!(o.eps >= 0)) fail("attention 'structured': eps = ", o.eps, ". It must be at least 0.");
    whole_ = o.start == Start::uniform;
    if (o.start == Start::band) width_ = std::min(o.width, longest_ - 1);
    const Shape shape{config.heads, longest_, whole_ ? longest_ : 2 * width_ + 1};
    structure_ = o.learn ? constant_parameter(shape, 1) : Tensor::full(shape, 1, DType::f32);
    if (eps_ == 0) return;
    places_ = sparse_places("structured", longest_, o.density, rng);
    if (places_) error_ = constant_parameter(Shape{1, config.heads, places_.extent(2), 1}, 0);
  }
  void fields(Fields& f) override {
    HeadedAttention::fields(f);
    f("structure", structure_);
    f("error", error_);
    f("places", places_);
  }
  std::unique_ptr<Memory> start() const override {
    auto memory = std::make_unique<KeyValueMemory>();
    if (!whole_ && !error_ && config().causal) memory->reach = width_;
    return memory;
  }

 private:
  Tensor attend(Heads heads, const Attend& call) override {
    if (call.mask.bias()) {
      fail(
          "attention 'structured': it has no scores that a bias could be added to. Leave the bias out, or "
          "use softmax.");
    }
    const int64_t first = recall(heads, call), keys = heads.v.extent(2);
    const int64_t total = call.memory != nullptr ? call.memory->length : keys;
    const Sight sight{.first_query = first,
                      .queries = heads.q.extent(2),
                      .first_key = total - keys,
                      .keys = keys,
                      .causal = call.mask.is_causal()};
    check_longest("structured", std::max(first + sight.queries, total), longest_);
    if (call.pass.probe != nullptr) {
      // The map is what comes out where values are the unit vectors.
      const NoTape looking;
      const int64_t batch = heads.v.extent(0), all = heads.v.extent(1);
      std::vector<float> unit(static_cast<size_t>(keys * total), 0.0f);
      for (int64_t j = 0; j < keys; ++j) unit[static_cast<size_t>(j * total + total - keys + j)] = 1;
      const Tensor one =
          constant_table<float>(unit, Shape{1, 1, keys, total}, heads.v.device(), heads.v.dtype());
      call.pass.probe->see(*this,
                           run(expand(one, Shape{batch, all, keys, total}), call.mask, sight, nullptr));
    }
    return run(heads.v, call.mask, sight, call.pass.noise);
  }

  Tensor run(const Tensor& v, const Mask& mask, const Sight& sight, Rng* noise) const {
    const Tensor kept = mask.kept(v, sight.first_key);
    const Tensor values = kept ? v * kept : v;
    const Tensor there = kept ? expand(kept, Shape{v.extent(0), v.extent(1), sight.keys, 1})
                              : Tensor::full(Shape{1, v.extent(1), sight.keys, 1}, 1, v.dtype(), v.device());
    const auto dropped = [&](const Tensor& w) {  // each sequence has dice of its own
      if (noise == nullptr || config().dropout == 0) return w;
      Shape each = w.shape();
      each[0] = v.extent(0);
      return dropout(expand(w, each), config().dropout, noise);
    };
    Sums sums = of_structure(values, there, sight, dropped);
    if (error_ && !whole_) add_errors(sums, values, there, sight, dropped);
    // A row without keys is divided by the small number.
    const Tensor least = Tensor::full(Shape{1, 1, 1, 1}, 1e-15, v.dtype(), v.device());
    return sums.values / maximum(sums.sizes, least);
  }

  /// E at some of its places: [1, H, m, 1].
  Tensor errors(const SeenPlaces& seen) const {
    const Tensor values = take_rows(error_, row_ids(seen.which, error_.device()));
    return maximum(minimum(values, eps_), -eps_);
  }

  /// P, and E where P is kept.
  template <class Dropped>
  Sums of_structure(const Tensor& values, const Tensor& there, const Sight& sight,
                    const Dropped& dropped) const {
    const int64_t rows = sight.queries, columns = structure_.extent(2);
    const Shape shape{1, structure_.extent(0), rows, columns};
    Tensor w = reshape(abs(slice(structure_, 1, sight.first_query, sight.first_query + rows)), shape);
    const SeenPlaces seen =
        error_ ? seen_places(known_places_.of(places_), longest_, sight, whole_ ? longest_ : width_, true)
               : SeenPlaces();
    if (!seen.which.empty()) {
      std::vector<int32_t> cells;
      for (size_t n = 0; n < seen.which.size(); ++n) {
        const int64_t i = sight.first_query + seen.queries[n], j = sight.first_key + seen.keys[n];
        cells.push_back(static_cast<int32_t>(seen.queries[n] * columns + (whole_ ? j : j - i + width_)));
      }
      w = w + reshape(put_rows(errors(seen), row_ids(cells, w.device()), rows * columns), shape);
    }
    if (whole_) {
      w = slice(w, 3, 0, sight.keys);
      if (sight.causal) w = w * exp(Mask::causal().dense(w, sight.first_query));
      return {matmul(dropped(w), values), matmul(abs(w), there)};
    }
    if (sight.causal) {
      std::vector<uint8_t> past(static_cast<size_t>(columns), 0);
      std::fill(past.begin(), past.begin() + width_ + 1, uint8_t{1});
      w = select(constant_table<uint8_t>(past, Shape{1, 1, 1, columns}, w.device()), w, 0);
    }
    return {band_product(dropped(w), values, sight), band_product(abs(w), there, sight)};
  }

  /// E where P is not kept.
  template <class Dropped>
  void add_errors(Sums& sums, const Tensor& values, const Tensor& there, const Sight& sight,
                  const Dropped& dropped) const {
    const SeenPlaces seen = seen_places(known_places_.of(places_), longest_, sight, width_, false);
    if (seen.which.empty()) return;
    const Tensor queries = row_ids(seen.queries, values.device()), keys = row_ids(seen.keys, values.device());
    const Tensor w = errors(seen);
    sums.values = sums.values + put_rows(dropped(w) * take_rows(values, keys), queries, sight.queries);
    sums.sizes = sums.sizes + put_rows(abs(w) * take_rows(there, keys), queries, sight.queries);
  }

  int64_t longest_, width_ = 0;
  double eps_;
  bool whole_ = false;
  Tensor structure_, error_;  // [H, L, 2 w + 1] or [H, L, L], [1, H, n, 1]
  Tensor places_;             // [1, 1, n]
  KnownNumbers known_places_;
};

}  // namespace

Variant variant::structured() {
  return describe<Structured, Options>(
      {.name = "structured",
       .paper = "Conti 2024",
       .idea =
           "A map that does not look at the input: a structured matrix, and a sparse one of small errors.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 0.71},  // the band's own cells do not know the width
       .causal = true,
       .steps = true,
       .map = MapKind::signed_,
       .from = 1024});
}

}  // namespace heed
