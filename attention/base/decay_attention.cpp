// Recurrent linear attention with decay: the scan, its norm and gate, and the map for a recorder.
#include "heed/attention/base/decay_attention.h"

#include <cmath>

#include "heed/autograd/autocast.h"
#include "heed/core/settings_in_errors.h"

namespace heed {

DecayAttention::DecayAttention(const AttentionConfig& config, const OutputOptions& output_options, Rng& rng)
    : MultiHeadAttention(config, rng), output_options_(output_options) {
  if (output_options.gate) {
    gate_ = std::make_unique<Linear>(config.d_model, config.inner_width(), rng,
                                     LinearOptions{.bias = config.query_bias, .init = config.init});
  }
}

void DecayAttention::fields(Fields& f) {
  MultiHeadAttention::fields(f);
  f("gate", gate_);
}

Tensor DecayAttention::given_tensor(const Tensor& tensor, const char* name, const Heads& heads) {
  if (!tensor) return {};
  const Shape rows{heads.q.extent(0), heads.q.extent(1), heads.q.extent(2)};
  if (tensor.shape() == rows) return reshape(tensor, Shape{rows[0], rows[1], rows[2], 1});
  const bool fits = tensor.rank() == 4 && tensor.extent(0) == rows[0] && tensor.extent(1) == rows[1] &&
                    tensor.extent(2) == rows[2];
  if (!fits) {
    fail("attention: ", name, " is ", tensor.shape(), "; it must be ", rows,
         ", one number for each key, or one for each element of it.");
  }
  return tensor;
}

Tensor DecayAttention::required_layer_input(const AttentionInput& input, const char* name) {
  if (!input.keys) {
    fail("attention: ", name, " is computed from the layer's input, which this call lacks. Give it",
         settings_source() == SettingsSource::command_line ? text(": --param ", name, "=FILE.npy.")
                                                           : std::string(" as AttentionInput::keys."));
  }
  return widened(input.keys);
}

Tensor DecayAttention::attend(Heads heads, const AttentionInput& input) {
  refuse_bias(input, "a state that decays");
  if (!input.mask.is_causal())
    fail("attention: a state that decays looks back only. Use a causal mask, or another attention.");
  auto* cache = cache_of<StateCache>(input);
  if (!heads.k) fail("attention: no keys were given. Each query brings its own key here.");
  if (heads.q.extent(2) != heads.k.extent(2)) {
    fail("attention: ", heads.q.extent(2), " causal queries for ", heads.k.extent(2),
         " keys. Continue with a cache instead.");
  }
  refuse_map_of_cached_call(input);
  const int64_t first = cache != nullptr ? cache->length : 0, length = heads.q.extent(2);
  ScanInputs inputs = scan_inputs(heads, input, first);
  if (const Tensor kept = input.mask.padding_mask(inputs.k, first)) inputs.k = inputs.k * kept;
  const auto scan = [&](const Tensor& values, const Tensor& start, bool with_final_state) {
    return decay_scan({.q = inputs.q,
                       .k = inputs.k,
                       .v = inputs.value_scale ? values * inputs.value_scale : values,
                       .log_decay = inputs.log_decay,
                       .beta = inputs.beta,
                       .start = start},
                      with_final_state);
  };
  Tensor y = scan(heads.v, cache != nullptr ? cache->state : Tensor(), cache != nullptr);
  if (cache != nullptr) {
    cache->state = slice(y, 2, length, y.extent(2));  // the scan puts it behind the outputs
    cache->length += length;
    y = slice(y, 2, 0, length);
  }
  const Tensor inverse_rms = output_options_.norm ? reciprocal(sqrt(mean(square(y), 3) + 1e-6)) : Tensor();
  record_map(input, [&] {
    const Tensor map = scan(identity_values(inputs.q), {}, /*with_final_state=*/false);
    return inverse_rms ? map * inverse_rms : map;
  });
  if (inverse_rms) y = y * inverse_rms;
  if (!gate_) return y;
  if (!input.queries)
    fail("attention: the gate is computed from the layer's input, which this call lacks. Set gate=false.");
  return y * silu(projected(*gate_, input.queries));
}

StepRates::StepRates(const AttentionConfig& config, Rng& rng)
    : step(config.d_model, config.heads, rng, {.init = config.init}) {
  std::vector<float> log_rates, biases;
  for (int64_t h = 0; h < config.heads; ++h) {
    const double fraction =
        config.heads > 1 ? static_cast<double>(h) / static_cast<double>(config.heads - 1) : 0.5;
    log_rates.push_back(static_cast<float>(std::log(1 + 15 * fraction)));   // rates of 1 to 16
    const double step_size = 0.001 * std::pow(100.0, 1 - fraction);         // from 0.1 down to 0.001
    biases.push_back(static_cast<float>(std::log(std::expm1(step_size))));  // the inverse of softplus
  }
  log_rate = leaf(Tensor::from(log_rates, Shape{config.heads}));
  step.bias = leaf(Tensor::from(biases, Shape{config.heads}));
}

void StepRates::fields(Fields& f) {
  f("step", step);
  f("log_rate", log_rate);
}

}  // namespace heed
