// Casinoformer: each query attends to "buds", nodes of a binary tree over its keys. Nodes of large mass are
// split until there are ceil(l^E) buds, for l keys.
//
//   y_i = sum_n e_n V_n / sum_n |n| e_n,      e_n = exp(q_i . K_n / (|n| sqrt(d)))
//
// K_n and V_n are sums over the |n| keys below bud n; denominator=paper omits |n| in the denominator, as
// algorithm 1 of the paper does. select=sample draws P splits at once by mass, without replacement, and anew
// in each training step. Evaluation and generation draw from (seed, layer, position of the query) alone, so
// outputs do not depend on the batch and are equal in one call and step by step. select=argmax splits the
// largest mass, one bud at a time from the root. All heads share the buds, which get no gradient. The n^(1 +
// E) buds are stored for the backward pass in 4 bytes each. There is no dropout: sampling is the noise.
//
// Masses of buds (mass=), with x = q . K_n / (|n| sqrt(d)), summed over heads. Masses of the paper: uniform
// 1; edh base^(distance of the last key) - base^(1 + distance of the first); align exp(x); posalign, rff,
// favor and favor_relu phi(q) . phi(K)_n / |n| with the features of TreeFeatures, posalign as exponent. Our
// masses (core/kernels/content/tree_moments.h), with weights as shares of each head's own sum Z and s the
// variance of scores below n, by columns: lookahead (|l| exp(x_l) + |r| exp(x_r) - |n| exp(x)) / Z, the
// weight gained by a split into l and r; contrast (|l| |r| / |n|) (exp(x_l) - exp(x_r))^2 / Z^2, the squared
// error of weights that the split removes; gap |n| (exp(x + s / 2) - exp(x)) / Z, the weight lost without a
// split; variance |n| exp(2 x + s) (exp(s) - 1) / Z^2, the squared error of the weights that one bud
// replaces.
//
// Parameters: projection [H, d, d] of the features (masses rff, favor, favor_relu; a fixed draw with
// orthogonal rows); draws [Tq, m], optional: uniform numbers in [0, 1) that decide the splits of a query in
// order, instead of new random numbers at each call.
#include <cmath>
#include <optional>

#include "heed/attention/support/random_projections.h"
#include "heed/attention/support/tree.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/content/tree_moments.h"

namespace heed {
namespace {

/// Estimates of a node's mass. `align`, `lookahead` and `contrast` need no features; `uniform` and `edh` do
/// not depend on keys. The last four are ours, the others the paper's.
enum class TreeMass {
  uniform,
  edh,
  align,
  posalign,
  rff,
  favor,
  favor_relu,
  lookahead,
  contrast,
  gap,
  variance
};
/// True when the mass is computed from moments of scores (core/kernels/content/tree_moments.h).
bool is_from_moments(TreeMass mass) { return mass >= TreeMass::lookahead; }

/// True when the mass needs random features.
bool is_random(TreeMass mass) { return mass >= TreeMass::rff && mass <= TreeMass::favor_relu; }

/// The feature map phi, without gradients. x' = x d^(-1/4).
///   posalign    [x_+, (-x)_+]
///   rff         d^(-1/2) exp(min(|x'|, 10)^2 / 2) [sin W x', cos W x']
///   favor       (2 d)^(-1/2) exp(-|x'|^2 / 2) [exp(W x'), exp(-W x')]
///   favor_relu  (2 d)^(-1/2) [(W x')_+, (-W x')_+]
///   gap, variance  [x, x^2], of keys only
class TreeFeatures {
 public:
  /// Draws W [heads, d, d] where `mass` needs one.
  TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng);
  /// From now on uses a separate W for each position, drawn from this seed, instead of `projection`.
  void redraw(uint64_t seed) { seed_ = seed; }

  /// phi(x) [B, H, T, 2 d] of x [B, H, T, d], whose first row is at position `first`; empty when the mass
  /// needs no features.
  Tensor operator()(const Tensor& x, int64_t first) const;

  /// W [H, d, d]: orthogonal rows with the lengths of normal vectors, or sqrt(d) for favor_relu. Empty when
  /// nothing is random.
  Tensor projection;

 private:
  Tensor draw_projection(int64_t heads, int64_t d, Rng& rng) const;  ///< W [H, d, d]
  Tensor map_features(const Tensor& x, const Tensor& w) const;       ///< phi(x) with W = w

  TreeMass mass_;
  std::optional<uint64_t> seed_;
};

TreeFeatures::TreeFeatures(TreeMass mass, int64_t heads, int64_t d, Rng& rng) : mass_(mass) {
  if (is_random(mass)) projection = draw_projection(heads, d, rng);
}

Tensor TreeFeatures::operator()(const Tensor& x_with_history, int64_t first) const {
  const NoGrad no_grad;
  const Tensor x = x_with_history.detach();
  if (mass_ < TreeMass::posalign || mass_ == TreeMass::lookahead || mass_ == TreeMass::contrast) return {};
  if (is_from_moments(mass_)) return concat(std::vector<Tensor>{x, square(x)}, -1);
  if (!is_random(mass_) || !seed_) return map_features(x, projection);
  std::vector<Tensor> parts;
  for (int64_t t = 0; t < x.extent(2); ++t) {
    Rng rng(*seed_);
    rng.restore(first + t, 0);
    parts.push_back(
        map_features(view::slice(x, 2, t, t + 1),
                     cast(draw_projection(x.extent(1), x.extent(3), rng).to(x.device()), x.dtype())));
  }
  return concat(parts, 2);
}

Tensor TreeFeatures::map_features(const Tensor& x, const Tensor& w) const {
  if (mass_ == TreeMass::posalign) return concat(std::vector<Tensor>{relu(x), relu(-x)}, -1);
  const double d = static_cast<double>(x.extent(-1));
  const Tensor scaled = x * std::pow(d, -0.25);
  const Tensor projected = matmul(scaled, transpose(w, 1, 2));  // W x'
  if (mass_ == TreeMass::favor_relu)
    return concat(std::vector<Tensor>{relu(projected), relu(-projected)}, -1) / std::sqrt(2 * d);
  const Tensor squares = sum(square(scaled), -1);
  if (mass_ == TreeMass::favor) {
    const Tensor half = squares * -0.5;
    return concat(std::vector<Tensor>{exp(projected + half), exp(half - projected)}, -1) / std::sqrt(2 * d);
  }
  const Tensor factor = exp(minimum(squares, 100) * 0.5) / std::sqrt(d);
  return concat(std::vector<Tensor>{factor * sin(projected), factor * cos(projected)}, -1);
}

Tensor TreeFeatures::draw_projection(int64_t heads, int64_t d, Rng& rng) const {
  std::vector<Tensor> of_heads;
  for (int64_t h = 0; h < heads; ++h) {
    const Tensor of_head = random_projection(d, d, {.equal = mass_ == TreeMass::favor_relu}, rng);
    of_heads.push_back(view::reshape(of_head, Shape{1, d, d}));
  }
  return cast(concat(of_heads, 0), DType::f32);
}

struct CasinoformerOptions {
  TreeMass mass = TreeMass::align;
  double exponent = 0.5;
  enum Denominator { counted, paper } denominator = counted;
  enum Select { sample, argmax } select = sample;
  int64_t parallel = 0;
  bool include_self = true;
  double base = 0.99;
  enum Reduce { mean, sum } mass_reduce = mean;
  enum Redraw { per_sequence, per_token } redraw = per_sequence;
  int64_t seed = 1;
  double scale = 0;

  void fields(Fields& f) {
    f("mass",
      Choice(mass, {"uniform", "edh", "align", "posalign", "rff", "favor", "favor_relu", "lookahead",
                    "contrast", "gap", "variance"}),
      "mass that decides which buds are split");
    f("exponent", exponent, "E: l keys give ceil(l^E) buds; 1 is softmax");
    f("denominator", Choice(denominator, {"counted", "paper"}),
      "counted: a bud counts once per key; paper: once per bud, so rows sum to more than one");
    f("select", Choice(select, {"sample", "argmax"}),
      "sample: draw splits by mass, in evaluation from `seed`; argmax: always the largest mass");
    f("parallel", parallel, {0, 1 << 20},
      "P: splits drawn at once, a power of two; 0: that below max_length^(E / 2)");
    f("include_self", include_self, "a causal query attends to its own key");
    f("base", base, "edh: how fast mass decays with distance");
    f("mass_reduce", Choice(mass_reduce, {"mean", "sum"}),
      "mass of a bud by align to favor_relu: the mean over its keys, or their sum");
    f("redraw", Choice(redraw, {"per_sequence", "per_token"}),
      "per_token: another random projection at each position, as the paper's code does");
    f("seed", seed, "seed of the splits drawn in evaluation, and of the projections of redraw=per_token");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Casinoformer final : public MultiHeadAttention {
 public:
  Casinoformer(const AttentionConfig& config, const CasinoformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng),
        options_(o),
        features_(o.mass, config.heads, head_dim(), rng),
        scale_(attention_scale(o.scale, head_dim())) {
    const auto refuse = [](const char* name, auto given, const char* legal) {
      fail("attention 'casinoformer': ", name, " = ", given, ". It must be ", legal, ".");
    };
    if (!(o.exponent >= 0 && o.exponent <= 1)) refuse("exponent", o.exponent, "at least 0 and at most 1");
    if (!(o.base > 0 && o.base < 1)) refuse("base", o.base, "above 0 and below 1");
    if ((o.parallel & (o.parallel - 1)) != 0) refuse("parallel", o.parallel, "0 or a power of two");
    if (options_.parallel == 0) {
      const double length = static_cast<double>(config.max_length > 0 ? config.max_length : 1024);
      options_.parallel = int64_t{1} << static_cast<int>(std::log2(length) * o.exponent / 2 + 1e-9);
    }
    if (o.redraw == CasinoformerOptions::per_token)
      features_.redraw(static_cast<uint64_t>(o.seed * 1000 + config.layer));
  }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("projection", features_.projection);
    f("draws", draws_);
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<TreeCache>(); }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override;

  /// Selects the buds of each query: i32 [B, Tq, capacity].
  Tensor select_buds(const Tensor& q, const Tensor& phi_q, const TreeNodes& nodes,
                     const kernel::BudParams& params) const {
    const Tensor buds(Shape{q.extent(0), q.extent(2), kernel::bud_capacity(params)}, DType::i32, q.device());
    const TreeMass mass = options_.mass;
    if (is_from_moments(mass)) {
      const bool needs_keys = mass == TreeMass::lookahead || mass == TreeMass::contrast;
      using kernel::MomentMass;
      constexpr MomentMass masses[] = {MomentMass::lookahead, MomentMass::contrast, MomentMass::gap,
                                       MomentMass::variance};  // as the last four of TreeMass
      const auto index = static_cast<size_t>(mass) - static_cast<size_t>(TreeMass::lookahead);
      const kernel::MomentParams moments{.growth = params, .mass = masses[index]};
      launch<kernel::MomentBuds>(q.device(), q.detach(), needs_keys ? nodes.keys : nodes.features, moments,
                                 buds);
      return buds;
    }
    const bool is_aligned = mass == TreeMass::align, has_features = mass > TreeMass::align;
    launch<kernel::TreeBuds>(q.device(), has_features ? phi_q : q.detach(),
                             is_aligned ? nodes.keys : nodes.features, params, buds);
    return buds;
  }
  /// The parameters of the growth of buds, without random draws.
  kernel::BudParams params_of(const kernel::VisibleLeaves& visible) const;
  /// Sets the random draws of the splits of this call, for `queries` queries.
  void set_draws(kernel::BudParams& params, int64_t queries, const ForwardContext& context) const;

  CasinoformerOptions options_;
  TreeFeatures features_;
  double scale_;
  Tensor draws_;  // [Tq, m], or empty
};

Tensor Casinoformer::attend(Heads heads, const AttentionInput& input) {
  refuse_bias(input, "a sum over many keys");
  if (!options_.include_self && !input.mask.is_causal()) {
    fail(
        "attention 'casinoformer': include_self = false is for causal attention, where a query has a key of "
        "its own. Leave it true here.");
  }
  const int64_t first = first_query_position(heads, input);
  auto* cache = cache_of<TreeCache>(input);
  const TreeNodes nodes =
      cache != nullptr ? cache->append_to_cache(heads, features_) : tree_nodes(heads, features_);
  kernel::BudParams params = params_of({.keys = heads.k.extent(2),
                                        .causal = input.mask.is_causal(),
                                        .self = options_.include_self,
                                        .first_query = first,
                                        .key_lengths = input.mask.key_lengths()});
  set_draws(params, heads.q.extent(2), input.context);
  const Tensor phi_q = is_from_moments(options_.mass) ? Tensor() : features_(heads.q, first);
  const kernel::TreeParams tree{.scale = scale_,
                                .counts_leaves = options_.denominator == CasinoformerOptions::counted,
                                .visible = params.visible,
                                .buds = select_buds(heads.q, phi_q, nodes, params),
                                .key_nodes = nodes.keys,
                                .value_nodes = nodes.values};
  if (input.context.recorder != nullptr) {
    // The map of a training step is that of the buds of evaluation, without sampling noise.
    kernel::TreeParams recorded = tree;
    if (input.context.training() && !params.greedy && !draws_) {
      set_draws(params, heads.q.extent(2), {});
      recorded.buds = select_buds(heads.q, phi_q, nodes, params);
    }
    input.context.recorder->record(*this, tree_map(heads.q, heads.k, recorded));
  }
  return tree_attention(heads.q, heads.k, heads.v, tree);
}

kernel::BudParams Casinoformer::params_of(const kernel::VisibleLeaves& visible) const {
  return {.visible = visible,
          .mass = options_.mass == TreeMass::uniform    ? kernel::BudMass::uniform
                  : options_.mass == TreeMass::edh      ? kernel::BudMass::decay
                  : options_.mass <= TreeMass::posalign ? kernel::BudMass::exponential
                                                        : kernel::BudMass::positive,
          .scale = scale_,
          .base = options_.base,
          .by_sum = options_.mass_reduce == CasinoformerOptions::sum,
          .exponent = options_.exponent,
          .parallel = options_.parallel,
          .greedy = !draws_ && options_.select == CasinoformerOptions::argmax};
}

void Casinoformer::set_draws(kernel::BudParams& params, int64_t queries,
                             const ForwardContext& context) const {
  if (params.greedy) return;
  if (draws_) {
    const int64_t wanted = kernel::bud_draws(params);
    if (draws_.rank() != 2 || draws_.extent(0) != queries || draws_.extent(1) < wanted) {
      fail("attention 'casinoformer': draws ", draws_.shape(), " for ", queries, " queries and ",
           params.visible.keys, " keys. They must be [", queries, ", ", wanted, "] or wider.");
    }
    params.draws = contiguous(cast(draws_.detach(), DType::f64));
  } else if (context.training()) {
    params.draw = context.rng->next();
  } else {  // a draw without a tick depends on seed, layer and position alone
    params.draw = {.seed = static_cast<uint64_t>(options_.seed),
                   .stream = static_cast<uint64_t>(config().layer),
                   .tick = {}};
  }
}

}  // namespace

Variant variant::casinoformer() {
  return describe<Casinoformer, CasinoformerOptions>(like(
      dot_product_traits,
      {.name = "casinoformer",
       .paper = "Casinoformer, choijacky/casinoformer",
       .summary =
           "A query attends to sums over nodes of a tree of keys, which are finer where the mass is large.",
       .time = {.length = 1.5, .width = 1}}));
}

}  // namespace heed
