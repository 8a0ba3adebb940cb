// Hard attention: each query takes the value of one sampled key. Xu et al. 2015, "Show, attend and tell:
// neural image caption generation with visual attention", arXiv 1502.03044, section 4.1.
//
//   a_i = softmax_j( temperature score(q_i, k_j) ),      y_i = v_s with s drawn from a_i
//
// mode=sample learns by REINFORCE: each sequence with log-likelihood L adds to the loss
//   - reward (L - b) log p(s) - entropy H(a) + coverage sum over j of (1 - sum over i of a_ij)^2,
// with log p(s) and H summed over heads and queries, all divided by the number of tokens or examples that the
// loss is a mean over; b follows L by b <- decay b + (1 - decay) L. Padding does not count, except queries of
// cross-attention, whose padding is unknown. With probability `soft` a batch uses the expectation instead of
// a sample. When evaluating, `test` chooses the expectation or the most likely key. Without
// ForwardContext::losses, samples do not train the scores. mode=straight_through samples by Gumbel noise,
// mode=argmax takes the most likely key; both pass the gradient to the soft weights. mode=expect is soft
// attention.
//
// Parameters: those of the score. score=general: general [H, d, d], applied as q W; score=additive:
// from_query [H, d, hidden], from_key [H, d, hidden], bias [H, 1, hidden], units [H, hidden]. Buffers:
// baseline [2], a sum of rewards and of its weights: b is their ratio. Fixed draw: choices i32 [B, H, Tq],
// the keys to take
#include "heed/attention/base/score_function.h"
#include "heed/attention/base/scored_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/content/hard_choice.h"

namespace heed {
namespace {

enum class HardMode { sample, argmax, expect, straight_through };
enum class Evaluation { expect, argmax };

struct HardOptions {
  ScoreKind score = ScoreKind::additive;
  int64_t hidden = 0;
  HardMode mode = HardMode::sample;
  Evaluation test = Evaluation::expect;
  double temperature = 1, soft = 0.5, reward = 0.1, decay = 0.9, entropy = 0.002, coverage = 0;
  void fields(Fields& f) {
    f("score", Choice(score, {"softmax", "dot", "general", "additive"}),
      "score of a pair; softmax: q . k / sqrt(d)");
    f("hidden", hidden, {0, max_width}, "score=additive: units that score a pair; 0: the width of a head");
    f("mode", Choice(mode, {"sample", "argmax", "expect", "straight_through"}), "how keys are chosen");
    f("test", Choice(test, {"expect", "argmax"}), "choice without noise of mode=sample and straight_through");
    f("temperature", temperature, "multiplies the scores");
    f("soft", soft, "probability that a batch takes the expectation");
    f("reward", reward, "weight of the reward");
    f("decay", decay, "decay of the moving baseline");
    f("entropy", entropy, "weight of the entropy of the weights");
    f("coverage", coverage, "weight of the squared differences of each key's total weight from 1");
  }
};

class HardAttention final : public ScoredAttention {
 public:
  HardAttention(const AttentionConfig& config, const HardOptions& o, Rng& rng)
      : ScoredAttention(config, rng),
        options_(o),
        score_(make_score(o.score, {.heads = config.heads, .width = head_dim(), .hidden = o.hidden}, rng)) {
    const auto check_share = [](const char* name, double share) {
      if (!(share >= 0 && share <= 1))
        fail("attention 'hard': ", name, " = ", share, ". It must be from 0 to 1.");
    };
    check_share("soft", o.soft);
    check_share("decay", o.decay);
    if (!(o.temperature > 0))
      fail("attention 'hard': temperature = ", o.temperature, ". It must be above 0.");
    if (config.modifiers.sink != Sink::none)
      fail(
          "attention 'hard': a query takes the value of one key, and a sink has no value. Set sink to none.");
    if (o.mode == HardMode::sample) baseline_ = Tensor::zeros(Shape{2});
  }
  bool modifies_scores() const override { return false; }  // a sink is not a key that can be sampled
  void fields(Fields& f) override {
    ScoredAttention::fields(f);
    score_->fields(f);
    if (options_.mode == HardMode::sample) f("baseline", baseline_);
    if (options_.mode != HardMode::expect) f("choices", choices_);
  }

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    const Tensor scores = (*score_)(q, k);
    return options_.temperature == 1 ? scores : scores * options_.temperature;
  }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    const int64_t first_query = read_cache(heads, input);
    Tensor scores = score(heads.q, heads.k, input);
    if (const Tensor mask = input.mask.dense(scores, first_query)) scores = scores + mask;
    const Tensor map = softmax(scores);
    const Tensor picked = pick_keys(scores, map, input);  // u8; empty: the expectation
    record(map, picked, input);
    if (!picked) return matmul(dropout(map, config().dropout, input.context.rng), heads.v);
    const Tensor one_hot = cast(picked, map.dtype());
    if (options_.mode != HardMode::sample) return matmul(one_hot + (map - map.detach()), heads.v);
    if (input.context.losses != nullptr && recording()) add_losses(scores, map, picked, heads.k, input);
    return matmul(one_hot, heads.v);
  }

  /// Records the weights and the sampled keys when training, and the effective map when evaluating.
  void record(const Tensor& map, const Tensor& picked, const AttentionInput& input) const {
    if (input.context.recorder == nullptr) return;
    const NoGrad no_grad;
    if (!picked) return input.context.recorder->record(*this, map);
    const Tensor one_hot = cast(picked, map.dtype());
    input.context.recorder->record(*this, input.context.training() ? map : one_hot, one_hot);
  }

  /// The sampled keys as one-hot u8 [B, H, Tq, Tk]; empty for the expectation.
  Tensor pick_keys(const Tensor& scores, const Tensor& map, const AttentionInput& input) {
    if (options_.mode == HardMode::expect) return {};
    if (choices_) return given_choices(map);
    const NoGrad no_grad;
    Rng* rng = input.context.rng;
    if (options_.mode == HardMode::argmax || (rng == nullptr && options_.test == Evaluation::argmax))
      return pick(map, {});
    if (rng == nullptr) return {};
    if (options_.mode == HardMode::straight_through) {
      const Tensor u = empty_like(map);
      fill_uniform(u, 1e-9, 1, *rng);
      return pick(softmax(scores - log(-log(u))), {});
    }
    if (rng->uniform() < options_.soft) return {};
    return pick(map, rng->next());
  }

  /// One key of each row as one-hot u8: the largest weight, or one sampled by `draw`.
  static Tensor pick(const Tensor& map, const Draw& draw) {
    const Tensor picked(map.shape(), DType::u8, map.device());
    launch<kernel::HardChoice>(map.device(), contiguous(map.detach()), draw, picked);
    return picked;
  }

  /// The keys in the field `choices` as one-hot u8 [B, H, Tq, Tk].
  Tensor given_choices(const Tensor& map) const {
    const int64_t keys = map.extent(3), rows = map.size() / std::max<int64_t>(keys, 1);
    const std::vector<double> choices = choices_.to_doubles();
    if (static_cast<int64_t>(choices.size()) != rows) {
      fail("attention 'hard': choices ", choices_.shape(), " for ", map.shape(),
           " weights. It must be [B, H, Tq].");
    }
    std::vector<uint8_t> picked(static_cast<size_t>(map.size()), 0);
    for (int64_t row = 0; row < rows; ++row) {
      const auto choice = static_cast<int64_t>(choices[static_cast<size_t>(row)]);
      if (choice < 0 || choice >= keys)
        fail("attention 'hard': choice ", choice, " of row ", row, " is none of the ", keys, " keys.");
      picked[static_cast<size_t>(row * keys + choice)] = 1;
    }
    return Tensor::of<uint8_t>(picked, map.shape(), map.device());
  }

  /// Adds the REINFORCE, entropy and coverage terms of a sample to the auxiliary losses.
  void add_losses(const Tensor& scores, const Tensor& map, const Tensor& picked, const Tensor& k,
                  const AttentionInput& input) {
    AuxiliaryLosses& losses = *input.context.losses;
    const Tensor keys = input.mask.padding_mask(k, 0),
                 queries = config().cross ? Tensor() : input.mask.padding_mask(map, 0);
    const auto sum_per_sequence = [](const Tensor& x, const Tensor& kept) {  // [B]
      const Tensor counted = kept ? x * kept : x;
      return reshape(sum(reshape(counted, Shape{x.extent(0), -1}), 1), Shape{x.extent(0)});
    };
    const Tensor log_probability = sum_per_sequence(sum(where(picked, log_softmax(scores), 0), 3), queries);
    Tensor regularisation;  // entropy and coverage, [B]
    if (options_.entropy != 0)
      regularisation = sum_per_sequence(sum(map * log(maximum(map, 1e-30)), 3), queries) * options_.entropy;
    if (options_.coverage != 0) {
      const Tensor attended = sum(queries ? map * queries : map, 2);  // [B, H, 1, Tk]
      const Tensor coverage =
          sum_per_sequence(square(affine(attended, -1, 1)), keys ? transpose(keys, 2, 3) : keys) *
          options_.coverage;
      regularisation = regularisation ? regularisation + coverage : coverage;
    }
    losses.add("hard", [this, &losses, log_probability, regularisation](const Likelihood& likelihood) {
      const Tensor reinforced = advantage(likelihood, losses.dry_run) * log_probability * -options_.reward;
      return sum((regularisation ? reinforced + regularisation : reinforced) * likelihood.has_targets) /
             likelihood.weight;
    });
  }

  /// Returns L - b [B], then updates b from the sequences of the batch that have targets, except in a dry
  /// run.
  Tensor advantage(const Likelihood& likelihood, bool dry_run) {
    const NoGrad no_grad;
    const Tensor& reward = likelihood.log_likelihood;
    const Tensor total = cast(slice(baseline_, 0, 0, 1), reward.dtype());
    const Tensor weight = cast(slice(baseline_, 0, 1, 2), reward.dtype());
    const Tensor advantage = reward - total / maximum(weight, 1e-30);
    if (!dry_run) {
      const double new_share = 1 - options_.decay;
      const Tensor mean = sum(reward * likelihood.has_targets) / sum(likelihood.has_targets);
      const Tensor next[] = {total * options_.decay + reshape(mean, Shape{1}) * new_share,
                             weight * options_.decay + new_share};
      baseline_ = cast(concat(next, 0), baseline_.dtype());
    }
    return advantage;
  }

  HardOptions options_;
  std::unique_ptr<ScoreFunction> score_;
  Tensor baseline_, choices_;  // [2]; i32 [B, H, Tq] or empty
};

}  // namespace

Variant variant::hard() {
  return describe<HardAttention, HardOptions>(
      like(full_map_traits, {.name = "hard",
                             .paper = "Xu et al. 2015",
                             .summary = "One key per query, sampled from the weights of any score."}));
}

}  // namespace heed
