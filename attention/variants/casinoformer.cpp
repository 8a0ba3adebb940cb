// Casinoformer: each query attends to "buds", nodes of a binary tree over its keys. It splits nodes where
// their mass is large until there are ceil(l^E) buds, for l keys.
//
//   y_i = sum_n e_n V_n / sum_n |n| e_n,      e_n = exp(q_i . K_n / (|n| sqrt(d)))
//
// K_n and V_n are sums over the |n| keys below bud n; denominator=paper omits |n| in the denominator, as
// algorithm 1 of the paper does. select=sample draws P splits at once by mass, without replacement; training
// draws anew in each step. Evaluation and generation draw from (seed, layer, position of the query) alone:
// the same input gives the same bits, in one call or step by step, beside other sequences or alone.
// select=argmax splits the largest mass, one bud at a time from the root. Buds are shared by all heads and
// get no gradient. The n^(1 + E) buds are stored for the backward pass in 4 bytes each. The layer's dropout
// is not applied: sampling is the noise.
//
// Masses of buds (mass=), with x = q . K_n / (|n| sqrt(d)), summed over heads. Of the paper: uniform 1; edh
// base^(distance of the last key) - base^(1 + distance of the first); align exp(x); posalign, rff, favor and
// favor_relu phi(q) . phi(K)_n / |n| with the features of attention/support/tree_features.h, posalign as
// exponent. Ours (core/kernels/content/tree_moments.h), weights as shares of each head's own sum Z and s the
// variance of scores below n, by columns: lookahead (|l| exp(x_l) + |r| exp(x_r) - |n| exp(x)) / Z, what a
// split into l and r finds; contrast (|l| |r| / |n|) (exp(x_l) - exp(x_r))^2 / Z^2, the squared error of
// weights that it mends; gap |n| (exp(x + s / 2) - exp(x)) / Z, the attention that is lost without a split;
// variance |n| exp(2 x + s) (exp(s) - 1) / Z^2, the squared error of the weights that one replaces.
//
// Parameters: projection [H, d, d] of the features (masses rff, favor, favor_relu; a fixed draw with
// orthogonal rows); draws [Tq, m], optional: uniform numbers in [0, 1) that decide the splits of a query in
// order, instead of new random numbers at each call.
#include <cmath>

#include "heed/attention/support/tree.h"
#include "heed/attention/support/tree_features.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/content/tree_moments.h"

namespace heed {
namespace {

struct CasinoformerOptions {
  TreeMass mass = TreeMass::align;
  double exponent = 0.5;
  enum Denominator { counted, paper } denominator = counted;
  enum Select { sample, argmax } where = sample;
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
      "which buds are split");
    f("exponent", exponent, "E: l keys give ceil(l^E) buds; 1 is softmax");
    f("denominator", Choice(denominator, {"counted", "paper"}),
      "counted: a bud counts as often as it has keys; paper: once, so rows sum to more than one");
    f("select", Choice(where, {"sample", "argmax"}),
      "sample: draw splits by mass, in evaluation from `seed`; argmax: always the largest mass");
    f("parallel", parallel, {0, 1 << 20},
      "P: splits drawn at once, a power of two; 0: that below max_length^(E / 2)");
    f("include_self", include_self, "a causal query sees its own key");
    f("base", base, "of edh: how fast mass decays with distance");
    f("mass_reduce", Choice(mass_reduce, {"mean", "sum"}),
      "mass of a bud by align to favor_relu: the mean over its keys, or their sum");
    f("redraw", Choice(redraw, {"per_sequence", "per_token"}),
      "per_token: another random projection at each position, as the paper's code does");
    f("seed", seed, "of the splits drawn in evaluation, and of the projections of redraw=per_token");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Casinoformer final : public MultiHeadAttention {
 public:
  Casinoformer(const AttentionConfig& config, const CasinoformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng),
        options_(o),
        features_(o.mass, config.heads, head_dim(), rng),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(head_dim()))) {
    const auto wrong = [](const char* name, auto given, const char* legal) {
      fail("attention 'casinoformer': ", name, " = ", given, ". It must be ", legal, ".");
    };
    if (!(o.exponent >= 0 && o.exponent <= 1)) wrong("exponent", o.exponent, "at least 0 and at most 1");
    if (!(o.base > 0 && o.base < 1)) wrong("base", o.base, "above 0 and below 1");
    if ((o.parallel & (o.parallel - 1)) != 0) wrong("parallel", o.parallel, "0 or a power of two");
    if (options_.parallel == 0) {
      const double longest = static_cast<double>(config.max_length > 0 ? config.max_length : 1024);
      options_.parallel = int64_t{1} << static_cast<int>(std::log2(longest) * o.exponent / 2 + 1e-9);
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

  Tensor grow(const Tensor& q, const Tensor& phi_q, const TreeNodes& nodes,
              const kernel::BudParams& params) const {
    const Tensor buds(Shape{q.extent(0), q.extent(2), kernel::bud_capacity(params)}, DType::i32, q.device());
    const TreeMass mass = options_.mass;
    if (is_of_moments(mass)) {
      const bool ahead = mass == TreeMass::lookahead || mass == TreeMass::contrast;
      const kernel::MomentParams moments{.growth = params,
                                         .mass = mass == TreeMass::lookahead  ? kernel::MomentMass::lookahead
                                                 : mass == TreeMass::contrast ? kernel::MomentMass::contrast
                                                 : mass == TreeMass::gap      ? kernel::MomentMass::gap
                                                                              : kernel::MomentMass::variance};
      launch<kernel::MomentBuds>(q.device(), q.detach(), ahead ? nodes.keys : nodes.features, moments, buds);
      return buds;
    }
    const bool aligned = mass == TreeMass::align, looks = mass >= TreeMass::align;
    launch<kernel::TreeBuds>(q.device(), aligned || !looks ? q.detach() : phi_q,
                             aligned ? nodes.keys : nodes.features, params, buds);
    return buds;
  }
  kernel::BudParams params_of(const kernel::TreeReach& reach) const;
  /// Decides how this call draws its splits, for so many queries.
  void set_draws(kernel::BudParams& params, int64_t queries, const ForwardContext& context) const;

  CasinoformerOptions options_;
  TreeFeatures features_;
  double scale_;
  Tensor draws_;  // [Tq, m], or empty
};

Tensor Casinoformer::attend(Heads heads, const AttentionInput& input) {
  if (input.mask.bias())
    fail(
        "attention: a bud stands for many keys, so its score takes no bias. Leave the bias out, or use "
        "softmax.");
  if (!options_.include_self && !input.mask.is_causal()) {
    fail(
        "attention 'casinoformer': include_self = false is for causal attention, where a query has a key of "
        "its own. Leave it true here.");
  }
  int64_t first = 0;
  TreeNodes nodes;
  if (input.cache != nullptr) {
    auto* cache = cache_of<TreeCache>(input);
    first = config().cross ? cache->queries : cache->length;
    nodes = cache->append_to_cache(heads, features_);
  } else {
    first = config().cross ? 0 : heads.k.extent(2) - heads.q.extent(2);
    nodes = tree_nodes(heads, features_);
  }
  kernel::BudParams params = params_of({.keys = heads.k.extent(2),
                                        .causal = input.mask.is_causal(),
                                        .self = options_.include_self,
                                        .first_query = first,
                                        .key_lengths = input.mask.key_lengths()});
  set_draws(params, heads.q.extent(2), input.context);
  const Tensor phi_q = is_of_moments(options_.mass) ? Tensor() : features_(heads.q, first);
  const kernel::TreeParams tree{.scale = scale_,
                                .counted = options_.denominator == CasinoformerOptions::counted,
                                .reach = params.reach,
                                .buds = grow(heads.q, phi_q, nodes, params),
                                .key_nodes = nodes.keys,
                                .value_nodes = nodes.values};
  if (input.context.recorder != nullptr) {
    // Without the noise of training: the buds of evaluation. In evaluation these are the output's own.
    kernel::TreeParams shown = tree;
    if (input.context.training() && !params.greedy && !draws_) {
      set_draws(params, heads.q.extent(2), {});
      shown.buds = grow(heads.q, phi_q, nodes, params);
    }
    input.context.recorder->record(*this, tree_map(heads.q, heads.k, shown));
  }
  return tree_attention(heads.q, heads.k, heads.v, tree);
}

kernel::BudParams Casinoformer::params_of(const kernel::TreeReach& reach) const {
  return {.reach = reach,
          .mass = options_.mass == TreeMass::uniform    ? kernel::BudMass::uniform
                  : options_.mass == TreeMass::edh      ? kernel::BudMass::decay
                  : options_.mass <= TreeMass::posalign ? kernel::BudMass::exponential
                                                        : kernel::BudMass::positive,
          .scale = scale_,
          .base = options_.base,
          .by_sum = options_.mass_reduce == CasinoformerOptions::sum,
          .exponent = options_.exponent,
          .parallel = options_.parallel,
          .greedy = !draws_ && options_.where == CasinoformerOptions::argmax};
}

void Casinoformer::set_draws(kernel::BudParams& params, int64_t queries,
                             const ForwardContext& context) const {
  if (params.greedy) return;
  if (draws_) {
    const int64_t wanted = kernel::bud_draws(params);
    if (draws_.rank() != 2 || draws_.extent(0) != queries || draws_.extent(1) < wanted) {
      fail("attention 'casinoformer': draws ", draws_.shape(), " for ", queries, " queries and ",
           params.reach.keys, " keys. They must be [", queries, ", ", wanted, "] or wider.");
    }
    params.draws = contiguous(cast(draws_.detach(), DType::f64));
  } else if (context.training()) {
    params.draw = context.rng->next();
  } else {  // without a tick: by position
    params.draw = {.seed = static_cast<uint64_t>(options_.seed),
                   .stream = static_cast<uint64_t>(config().layer),
                   .tick = {}};
  }
}

}  // namespace

Variant variant::casinoformer() {
  return describe<Casinoformer, CasinoformerOptions>(
      {.name = "casinoformer",
       .paper = "Casinoformer, choijacky/casinoformer",
       .idea = "A query looks at sums over nodes of a tree of keys, finer where the mass is.",
       .time = {.length = 1.5, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed
