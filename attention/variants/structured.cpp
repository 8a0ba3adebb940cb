// Structured and sparse. Conti 2024, "Attention maps as a sum of a structured and a sparse matrix",
// section 3.
//
//   y_i = sum_j a_ij v_j,      a_ij = w_ij / sum_j |w_ij| over the keys that i may see,      w = |P| +
//   clip(E, +-eps)
//
// The map does not look at the input: P is a matrix of its own for each head, fixed or trained, and E a
// sparse one with errors of at most eps at places drawn when it is made. While no entry is negative its rows
// sum to one. Entries of P that are zero have no slope and stay zero.
//
// Parameters: structure [H, L, L], P (no leaf with learn=false); error [1, H, n, 1], the values of E (with
// eps > 0). Fixed draws: places [1, 1, n], i32, where in a row-major L x L matrix they stand. L is the
// longest input.
#include <cmath>

#include "attention/banded.h"
#include "attention/variant.h"

namespace heed {
namespace {

enum class Start { band, diagonal, uniform };

struct Options {
  Start start = Start::band;
  int64_t width = 32;
  bool learn = true;
  double eps = 0, density = 0.01;
  void fields(Fields& f) {
    f("start", Choice(start, {"band", "diagonal", "uniform"}),
      "which entries of P are 1 at first; others are 0");
    f("width", width, "w, diagonals of the band to either side");
    f("learn", learn, "train P");
    f("eps", eps, "the largest error of E; 0: there is no E");
    f("density", density, "the share of pairs that have an error; 0: one over the longest input");
  }
};

class Structured final : public HeadedAttention {
 public:
  Structured(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng, Project::v), eps_(o.eps) {
    const int64_t longest = config.max_length;
    if (longest < 1)
      fail(
          "attention 'structured': P is made for the longest input, which is not known here. Set "
          "max_length.");
    if (o.width < 0) fail("attention 'structured': width = ", o.width, ". It must be at least 0.");
    if (!(o.eps >= 0)) fail("attention 'structured': eps = ", o.eps, ". It must be at least 0.");
    std::vector<float> one(static_cast<size_t>(longest * longest));
    for (int64_t i = 0; i < longest; ++i) {
      for (int64_t j = 0; j < longest; ++j) {
        const int64_t reach = o.start == Start::band ? o.width : o.start == Start::diagonal ? 0 : longest;
        one[static_cast<size_t>(i * longest + j)] = std::abs(i - j) <= reach ? 1.0f : 0.0f;
      }
    }
    const Tensor all = contiguous(
        expand(Tensor::from(one, Shape{1, longest, longest}), Shape{config.heads, longest, longest}));
    structure_ = o.learn ? leaf(all) : all;
    if (eps_ == 0) return;
    places_ = sparse_places("structured", longest, o.density, rng);
    if (places_) error_ = constant_parameter(Shape{1, config.heads, places_.extent(2), 1}, 0);
  }
  void fields(Fields& f) override {
    HeadedAttention::fields(f);
    f("structure", structure_);
    f("error", error_);
    f("places", places_);
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<KeyValueMemory>(); }

 private:
  /// w of queries from `first` on: [1, H, Tq, Tk].
  Tensor matrix(int64_t first, int64_t queries, int64_t keys) const {
    const int64_t heads = structure_.extent(0), longest = structure_.extent(1);
    Tensor all = reshape(abs(structure_), Shape{1, heads, longest, longest});
    if (error_) {
      const Tensor clipped = error_ - relu(error_ - eps_) + relu(-error_ - eps_);
      all = all + reshape(put_rows(clipped, places_, longest * longest), all.shape());
    }
    return slice(slice(all, 2, first, first + queries), 3, 0, keys);
  }

  Tensor attend(Heads heads, const Attend& call) override {
    if (call.mask.bias()) {
      fail(
          "attention 'structured': it has no scores that a bias could be added to. Leave the bias out, or "
          "use "
          "softmax.");
    }
    const int64_t first = recall(heads, call);
    const int64_t batch = heads.v.extent(0), queries = heads.q.extent(2), keys = heads.v.extent(2);
    check_longest("structured", std::max(first + queries, keys), structure_.extent(1));
    Tensor map = expand(matrix(first, queries, keys), Shape{batch, structure_.extent(0), queries, keys});
    Tensor seen = map;
    const Tensor mask = call.mask.dense(map, first);
    if (mask) seen = map * exp(mask);
    // The small number keeps a row without keys finite, and masking last keeps its gradient at zero.
    map = map / (sum(abs(seen), 3) + 1e-20);
    if (mask) map = map * exp(mask);
    if (call.pass.probe != nullptr) call.pass.probe->see(*this, map);
    return matmul(dropout(map, config().dropout, call.pass.noise), heads.v);
  }

  double eps_;
  Tensor structure_, error_;  // [H, L, L], [1, H, n, 1]
  Tensor places_;             // [1, 1, n]
};

}  // namespace

Variant variant::structured() {
  return describe<Structured, Options>(
      {.name = "structured",
       .paper = "Conti 2024",
       .idea =
           "A map that does not look at the input: a structured matrix, and a sparse one of small errors.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 2, .width = 0},
       .causal = true,
       .steps = true,
       .map = MapKind::signed_});
}

}  // namespace heed
