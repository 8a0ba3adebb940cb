// Names, help and ranges of the optimizer's options.
#include <cmath>

#include "heed/train/optim/optimizer.h"

namespace heed {

Choice choice_of(OptimizerKind& kind) {
  return {kind, {"adamw", "adam", "sgd", "lion", "schedule_free", "muon"}};
}

void OptimizerOptions::fields(Fields& f) {
  f("optimizer", choice_of(kind),
    "update rule; muon: of matrices between hidden states, and adamw of all other parameters");
  f("beta1", beta1, "decay rate of the running mean of gradients");
  f("beta2", beta2, "decay rate of the running mean of squared gradients");
  f("epsilon", epsilon, "added to the root of the second moment");
  f("momentum", momentum, "momentum of sgd");
  muon.fields(f);
  f("hidden_rate", hidden_rate,
    "factor on the learning rate of matrices between hidden states, such as muon's");
  f("weight_decay", weight_decay.emplace(decay()), "weight decay, of matrices alone unless decay_vectors");
  f("decay_vectors", decay_vectors, "weight decay of biases, norms and other vectors, too");
  f("grad_clip", grad_clip, "maximum norm of the gradient; 0: no clipping");
  f("ema", ema, "decay of the moving average of weights that is validated and kept; 0: none");
  f("grad_clip_value", grad_clip_value,
    "maximum absolute value of each element of the gradient; 0: no clipping");
}

void OptimizerOptions::check() const {
  const auto refuse_unless = [](bool legal, const char* name, double value, const char* range) {
    if (!legal) fail("optimizer: ", name, " = ", value, ". It must be ", range, ".");
  };
  const auto fraction = [&](const char* name, double value) {
    refuse_unless(value >= 0 && value < 1, name, value, "at least 0 and below 1");
  };
  const auto not_negative = [&](const char* name, double value) {
    refuse_unless(value >= 0 && std::isfinite(value), name, value, "at least 0");
  };
  fraction("beta1", beta1);
  fraction("beta2", beta2);
  fraction("momentum", momentum);
  fraction("ema", ema);
  refuse_unless(epsilon > 0 && std::isfinite(epsilon), "epsilon", epsilon, "above 0, such as 1e-8");
  not_negative("weight_decay", decay());
  not_negative("grad_clip", grad_clip);
  not_negative("grad_clip_value", grad_clip_value);
  not_negative("hidden_rate", hidden_rate);
  muon.check();
  if (kind == OptimizerKind::schedule_free && ema > 0)
    fail("optimizer: ema = ", ema, " with schedule_free, which averages the weights by itself. Use ema = 0.");
}

}  // namespace heed
