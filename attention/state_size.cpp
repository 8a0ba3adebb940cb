// Counts the tensors of caches.
#include "heed/attention/state_size.h"

#include <algorithm>

#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

/// Adds up the elements of all tensors.
class CountElements final : public Fields {
 public:
  int64_t count = 0;

 private:
  void on(const char*, Tensor& tensor) override { count += tensor ? tensor.size() : 0; }
};

/// The numbers that all heads keep; empty where the attention keeps no state.
std::optional<int64_t> state_of(const std::string& spec, const AttentionConfig& config, int64_t length) {
  const Traits& traits = variant_named(parse_spec(spec).name).traits;
  if (!traits.causal || !traits.steps) return {};
  Rng rng(1);
  const std::unique_ptr<Attention> attention = make_attention(spec, config, rng);
  const std::unique_ptr<AttentionCache> cache = attention->new_cache();
  // A window drops keys when a token comes alone. Gradients are recorded, since a buffer of rows has no room
  // to spare then.
  for (const int64_t tokens : {length - 1, int64_t{1}}) {
    if (tokens == 0) continue;
    Tensor x(Shape{1, tokens, config.d_model});
    fill_normal(x, 0, 1, rng);
    attend(*attention, {.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()});
  }
  CountElements elements;
  cache->fields(elements);
  return elements.count;
}

}  // namespace

std::optional<double> state_size(const std::string& text, AttentionConfig config, int64_t length) {
  config.causal = true;
  config.max_length = std::max(config.max_length, length);
  const LayeredSpec spec = parse_layered_spec(text);
  double sum = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    config.layer = layer;
    const auto numbers = state_of(spec.of(layer), config, length);
    if (!numbers) return {};
    sum += static_cast<double>(*numbers);
  }
  return sum / static_cast<double>(config.layers * config.heads);
}

}  // namespace heed
