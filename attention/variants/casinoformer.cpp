// Attention over buds of a tree of keys. Casinoformer: each query splits nodes of a binary tree over the
// positions before it, where their mass is, until there are ceil(l^E) of them, l being its number of keys.
//
//   y_i = sum_n e_n V_n / sum_n |n| e_n,      e_n = exp(q_i . K_n / (|n| sqrt(d)))
//
// K_n and V_n are sums over the |n| keys below bud n; `paper` leaves |n| out of the denominator, as its
// algorithm 1 does. Splits are drawn while there is noise, and go to the largest mass otherwise. Buds are
// shared by all heads and constants to the gradient. n^(1 + E) buds are kept for the gradient as 4 bytes
// each. The host's dropout is not applied: splits that are drawn are the noise.
//
// Parameters: projection [H, d, d] of the features (masses rff, favor, favor_relu; a fixed draw, rows
// orthogonal); draws [Tq, m] uniform numbers in [0, 1) that decide the splits of a query in turn, instead of
// drawing at each call.
#include <cmath>

#include "attention/tree.h"
#include "attention/tree_features.h"
#include "attention/variant.h"

namespace heed {
namespace {

struct Options {
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
    f("mass", Choice(mass, {"uniform", "edh", "align", "posalign", "rff", "favor", "favor_relu"}),
      "which buds are split");
    f("exponent", exponent, "E: l keys give ceil(l^E) buds; 1 is softmax");
    f("denominator", Choice(denominator, {"counted", "paper"}),
      "counted: a bud counts as often as it has keys; paper: once, so rows sum to more than one");
    f("select", Choice(select, {"sample", "argmax"}),
      "sample: draw splits by mass while there is noise; argmax: always the largest mass");
    f("parallel", parallel, {0, 1 << 20},
      "P: splits drawn at once, a power of two; 0: that below max_length^(E / 2)");
    f("include_self", include_self, "a causal query sees its own key");
    f("base", base, "of edh: how fast mass decays with distance");
    f("mass_reduce", Choice(mass_reduce, {"mean", "sum"}),
      "mass of a bud: the mean over its keys, or their sum");
    f("redraw", Choice(redraw, {"per_sequence", "per_token"}),
      "per_token: another random projection at each position, as the paper's code does");
    f("seed", seed, "of the projections of redraw=per_token");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Casinoformer final : public HeadedAttention {
 public:
  Casinoformer(const AttentionConfig& config, const Options& o, Rng& rng)
      : HeadedAttention(config, rng),
        options_(o),
        features_(o.mass, config.heads, head_width(), rng),
        scale_(o.scale != 0 ? o.scale : 1 / std::sqrt(static_cast<double>(head_width()))) {
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
    if (o.redraw == Options::per_token) features_.redraw(static_cast<uint64_t>(o.seed * 1000 + config.layer));
  }
  void fields(Fields& f) override {
    HeadedAttention::fields(f);
    f("projection", features_.projection);
    f("draws", draws_);
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<TreeMemory>(); }

 private:
  Tensor attend(Heads heads, const Attend& call) override;

  Tensor grow(const Tensor& q, const Tensor& phi_q, const TreeNodes& nodes, kernel::BudTerms terms) const {
    const Tensor buds(Shape{q.extent(0), q.extent(2), kernel::bud_capacity(terms)}, DType::i32, q.device());
    const bool aligned = options_.mass == TreeMass::align, looks = options_.mass >= TreeMass::align;
    launch<kernel::TreeBuds>(q.device(), aligned || !looks ? q.detach() : phi_q,
                             aligned ? nodes.keys : nodes.features, terms, buds);
    return buds;
  }

  Options options_;
  TreeFeatures features_;
  double scale_;
  Tensor draws_;  // [Tq, m], or empty
};

Tensor Casinoformer::attend(Heads heads, const Attend& call) {
  if (call.mask.bias())
    fail(
        "attention: a bud stands for many keys, so its score takes no bias. Leave the bias out, or use "
        "softmax.");
  if (!options_.include_self && !call.mask.is_causal()) {
    fail(
        "attention 'casinoformer': include_self = false is for causal attention, where a query has a key of "
        "its own. Leave it true here.");
  }
  int64_t first = 0;
  TreeNodes nodes;
  if (call.memory != nullptr) {
    auto* memory = memory_of<TreeMemory>(call);
    first = config().cross ? memory->queries : memory->length;
    nodes = memory->remember(heads, features_);
  } else {
    first = config().cross ? 0 : heads.k.extent(2) - heads.q.extent(2);
    nodes = tree_nodes(heads, features_);
  }
  const int64_t keys = heads.k.extent(2);
  kernel::BudTerms terms{.reach = {.keys = keys,
                                   .causal = call.mask.is_causal(),
                                   .self = options_.include_self,
                                   .first_query = first,
                                   .key_lengths = call.mask.key_lengths()},
                         .mass = options_.mass == TreeMass::uniform    ? kernel::BudMass::uniform
                                 : options_.mass == TreeMass::edh      ? kernel::BudMass::decay
                                 : options_.mass <= TreeMass::posalign ? kernel::BudMass::exponential
                                                                       : kernel::BudMass::positive,
                         .scale = scale_,
                         .base = options_.base,
                         .by_sum = options_.mass_reduce == Options::sum,
                         .exponent = options_.exponent,
                         .parallel = options_.parallel};
  const Tensor phi_q = features_(heads.q, first);
  const bool chance = draws_ || (options_.select == Options::sample && call.pass.noise != nullptr);
  // A probe is shown what there is without noise.
  const bool steady = !chance || (!draws_ && call.pass.probe != nullptr);
  const Tensor expected = steady ? grow(heads.q, phi_q, nodes, terms) : Tensor();
  Tensor buds = expected;
  if (chance) {
    terms.greedy = false;
    const int64_t wanted = kernel::bud_draws(terms);
    if (draws_) {
      if (draws_.rank() != 2 || draws_.extent(0) != heads.q.extent(2) || draws_.extent(1) < wanted) {
        fail("attention 'casinoformer': draws ", draws_.shape(), " for ", heads.q.extent(2), " queries and ",
             keys, " keys. They must be [", heads.q.extent(2), ", ", wanted, "] or wider.");
      }
      terms.draws = contiguous(cast(draws_.detach(), DType::f64));
    } else {
      terms.draw = call.pass.noise->next();
    }
    buds = grow(heads.q, phi_q, nodes, terms);
  }
  const kernel::TreeTerms tree{.scale = scale_,
                               .counted = options_.denominator == Options::counted,
                               .reach = terms.reach,
                               .buds = buds,
                               .key_nodes = nodes.keys,
                               .value_nodes = nodes.values};
  if (call.pass.probe != nullptr) {
    kernel::TreeTerms seen = tree;
    if (expected) seen.buds = expected;
    call.pass.probe->see(*this, tree_map(heads.q, heads.k, seen));
  }
  return tree_attention(heads.q, heads.k, heads.v, tree);
}

}  // namespace

Variant variant::casinoformer() {
  return describe<Casinoformer, Options>(
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
