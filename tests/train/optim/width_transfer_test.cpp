// Maximal update parametrization: what a model does in its first steps does not grow with its width.
#include <cmath>
#include <set>

#include "heed/attention/variant.h"
#include "heed/autograd/ops.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"
#include "heed/train/optim/optimizer.h"

using namespace heed;

namespace {

constexpr int64_t vocabulary = 24, narrow = 32, wide = 256;

TransformerConfig config_of(int64_t width, int64_t base_width, Tie tie) {
  TransformerConfig config;
  config.d_model = width;
  config.head_dim = 8;
  config.heads = width / 8;
  config.d_ff = 2 * width;
  config.layers = 2;
  config.max_length = 16;
  config.init = Init::normal;
  config.embedding_std = 0.1;
  config.tie_embeddings = tie;
  config.scale_embedding = false;
  config.base_width = base_width;
  return config;
}

double root_mean_square(const Tensor& x) { return std::sqrt(mean(square(x)).item()); }

/// Sizes of what a model computes.
struct Sizes {
  double hidden, logits;               ///< before training
  double hidden_change, logit_change;  ///< what the first steps add
};

/// Sizes over three steps of AdamW at one rate.
Sizes sizes_of(int64_t width, int64_t base_width, Tie tie) {
  const TransformerConfig config = config_of(width, base_width, tie);
  Rng rng(7);
  DecoderOnly model(config, vocabulary, attention_factory("softmax"), rng);
  std::vector<int32_t> all(8 * 16);
  for (int32_t& id : all) id = static_cast<int32_t>(rng.below(vocabulary));
  const Tensor ids = Tensor::of<int32_t>(all, Shape{8, 16});
  const auto outputs = [&] {
    const NoGrad no_grad;
    const Tensor hidden = model.hidden(ids, {});
    return std::pair(hidden, model.logits(hidden));
  };
  Optimizer optimizer(model, {.hidden_rate = config.width_ratio(), .weight_decay = 0});
  const auto [hidden, logits] = outputs();
  for (int step = 0; step < 3; ++step) {
    const Tensor targets = Tensor::of<int32_t>(all, Shape{8 * 16});
    backward(model.token_loss(model.hidden(ids, {}), targets, 0));
    optimizer.step(5e-3);
  }
  const auto [later_hidden, later_logits] = outputs();
  return {root_mean_square(hidden), root_mean_square(logits), root_mean_square(later_hidden - hidden),
          root_mean_square(later_logits - logits)};
}

}  // namespace

TEST_CASE("base_width: logits and their first changes do not grow with the width, as they do without it") {
  for (const Tie tie : {Tie::none, Tie::output}) {
    CAPTURE(static_cast<int>(tie));
    const Sizes small = sizes_of(narrow, narrow, tie), large = sizes_of(wide, narrow, tie),
                plain = sizes_of(wide, 0, tie);
    CAPTURE(small.logit_change, large.logit_change, plain.logit_change, small.hidden_change,
            large.hidden_change, plain.hidden_change, small.logits, large.logits, plain.logits);
    CHECK(large.logit_change / small.logit_change < 1.5);
    CHECK(large.logit_change / small.logit_change > 0.5);
    CHECK(large.hidden_change / small.hidden_change < 1.5);
    CHECK(large.hidden_change / small.hidden_change > 0.5);
    CHECK(large.logits < 1.5 * small.logits);
    CHECK(plain.logit_change / small.logit_change > 3);
  }
}

TEST_CASE("base_width: at that width nothing changes, and elsewhere hidden matrices begin smaller") {
  Rng one(1), other(1), third(1);
  const auto factory = attention_factory("softmax");
  DecoderOnly plain(config_of(narrow, 0, Tie::none), vocabulary, factory, one),
      same(config_of(narrow, narrow, Tie::none), vocabulary, factory, other),
      half(config_of(narrow, narrow / 4, Tie::none), vocabulary, factory, third);
  CHECK((save_bytes(plain) == save_bytes(same)));
  std::set<std::string> hidden;
  for (const Named& named : hidden_matrices(half)) hidden.insert(named.name);
  const std::vector<Named> ours = tensors(half), theirs = tensors(plain);
  for (size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(ours[i].name);
    const double factor = hidden.contains(ours[i].name) ? 0.5 : 1;
    CHECK(root_mean_square(*ours[i].tensor) == Approx(factor * root_mean_square(*theirs[i].tensor)));
  }
  CHECK(hidden.size() == 12);
}

TEST_CASE("base_width: settings give the optimizer the rate, and what does not go with it is named") {
  Config config = preset_config("shakespeare");
  config.set("model.init", "normal", "");
  config.set("model.base_width", "96", "");
  config.set("train.hidden_rate", "2", "");
  config.check();
  CHECK(config.optimizer_options().hidden_rate == 0.5);  // d_model is 384
  config.set("train.optimizer", "muon", "");
  CHECK_THROWS_WITH(config.check(), containing("train.optimizer = muon. Use adamw, adam, lion"));
  config.set("train.optimizer", "adamw", "");
  config.set("model.init", "xavier", "");
  CHECK_THROWS_WITH(config.check(), containing("model.base_width = 96 needs model.init = normal"));
}
