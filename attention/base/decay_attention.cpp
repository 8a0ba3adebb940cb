// Recurrent linear attention with decay: scan, norm and gate, map for recording.
#include "heed/attention/base/decay_attention.h"

#include <cmath>

#include "heed/core/settings_source.h"

namespace heed {

DecayAttention::DecayAttention(const AttentionConfig& config, const After& after, Rng& rng)
    : MultiHeadAttention(config, rng), after_(after) {
  if (after.gate) {
    gate_ = std::make_unique<Linear>(config.d_model, config.inner_width(), rng,
                                     LinearOptions{.bias = config.input_bias, .init = config.init});
  }
}

void DecayAttention::fields(Fields& f) {
  MultiHeadAttention::fields(f);
  f("gate", gate_);
}

Tensor DecayAttention::given(const Tensor& place, const char* name, const Heads& heads) {
  if (!place) return {};
  const Shape rows{heads.q.extent(0), heads.q.extent(1), heads.q.extent(2)};
  if (place.shape() == rows) return reshape(place, Shape{rows[0], rows[1], rows[2], 1});
  const bool fits = place.rank() == 4 && place.extent(0) == rows[0] && place.extent(1) == rows[1] &&
                    place.extent(2) == rows[2];
  if (!fits) {
    fail("attention: ", name, " is ", place.shape(), "; it must be ", rows,
         ", one number for each key, or one for each element of it.");
  }
  return place;
}

const Tensor& DecayAttention::layer_input(const AttentionInput& input, const char* name) {
  if (!input.keys) {
    fail("attention: ", name, " is made from the layer's input, which this call has not. Give it",
         settings_source() == SettingsSource::command_line ? text(": --param ", name, "=FILE.npy.")
                                                           : std::string(" as AttentionInput::keys."));
  }
  return input.keys;
}

Tensor DecayAttention::attend(Heads heads, const AttentionInput& input) {
  if (input.mask.bias())
    fail("attention: a state that fades takes no bias on its scores. Leave the bias out, or use softmax.");
  if (!input.mask.is_causal())
    fail("attention: a state that fades looks back only. Ask with a causal mask, or use another attention.");
  auto* cache = cache_of<StateCache>(input);
  if (!heads.k) fail("attention: no keys were given. Each query brings its own key here.");
  if (heads.q.extent(2) != heads.k.extent(2)) {
    fail("attention: ", heads.q.extent(2), " causal queries for ", heads.k.extent(2),
         " keys. Continue with a memory instead.");
  }
  const int64_t first = cache != nullptr ? cache->length : 0, length = heads.q.extent(2);
  ScanInputs inputs = scan_inputs(heads, input, first);
  if (const Tensor kept = input.mask.padding_mask(inputs.k, first)) inputs.k = inputs.k * kept;
  const Tensor values = inputs.amount ? heads.v * inputs.amount : heads.v;
  Tensor y = decay_scan({.q = inputs.q,
                         .k = inputs.k,
                         .v = values,
                         .log_decay = inputs.log_decay,
                         .beta = inputs.beta,
                         .start = cache != nullptr ? cache->state : Tensor()},
                        cache != nullptr);
  if (cache != nullptr) {
    cache->state = slice(y, 2, length, y.extent(2));
    cache->length += length;
    y = slice(y, 2, 0, length);
  }
  const Tensor shrink = after_.norm ? reciprocal(sqrt(mean(square(y), 3) + 1e-6)) : Tensor();
  if (input.context.recorder != nullptr) show(inputs, shrink, input);
  if (shrink) y = y * shrink;
  if (!gate_) return y;
  if (!input.queries)
    fail("attention: the gate is made from the layer's input, which this call has not. Set gate=false.");
  return y * silu(split((*gate_)(input.queries)));
}

void DecayAttention::show(const ScanInputs& inputs, const Tensor& shrink, const AttentionInput& input) const {
  if (input.cache != nullptr) {
    fail(
        "attention: a state does not tell single keys apart, so a step with a memory has no map. Look at a "
        "full call.");
  }
  const NoGrad no_grad;
  // The output is linear in the values, so with the identity as values it is the map.
  const int64_t length = inputs.q.extent(2);
  Tensor values =
      expand(identity(length, inputs.q), Shape{inputs.q.extent(0), inputs.q.extent(1), length, length});
  if (inputs.amount) values = values * inputs.amount;
  const Tensor map = decay_scan({.q = inputs.q,
                                 .k = inputs.k,
                                 .v = values,
                                 .log_decay = inputs.log_decay,
                                 .beta = inputs.beta,
                                 .start = {}},
                                false);
  input.context.recorder->record(*this, shrink ? map * shrink : map);
}

StepRates::StepRates(const AttentionConfig& config, Rng& rng)
    : step(config.d_model, config.heads, rng, {.init = config.init}) {
  std::vector<float> rates, biases;
  for (int64_t h = 0; h < config.heads; ++h) {
    const double share =
        config.heads > 1 ? static_cast<double>(h) / static_cast<double>(config.heads - 1) : 0.5;
    rates.push_back(static_cast<float>(std::log(1 + 15 * share)));
    const double start = 0.001 * std::pow(100.0, 1 - share);
    biases.push_back(static_cast<float>(std::log(std::expm1(start))));
  }
  log_rate = leaf(Tensor::from(rates, Shape{config.heads}));
  step.bias = leaf(Tensor::from(biases, Shape{config.heads}));
}

void StepRates::fields(Fields& f) {
  f("step", step);
  f("log_rate", log_rate);
}

}  // namespace heed
