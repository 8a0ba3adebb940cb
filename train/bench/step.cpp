// heed bench step: one token of decoding by one attention layer after a long history, beside softmax.
#include <algorithm>

#include "heed/attention/variant.h"
#include "heed/core/operation_count.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/measure.h"

namespace heed::bench {
namespace {

constexpr int64_t step_heads = 8, chunk = 256;

/// One layer with its cache, after a history.
struct SteppedLayer {
  std::string spec;
  int64_t width;
  std::unique_ptr<Attention> layer;
  std::unique_ptr<AttentionCache> cache;
  std::vector<double> seconds = {};

  SteppedLayer(const std::string& text, int64_t head_dim, int64_t history)
      : spec(text), width(step_heads * head_dim) {
    Rng rng(1);
    layer = make_attention(
        spec, {.d_model = width, .heads = step_heads, .causal = true, .max_length = 2 * history}, rng);
    cache = layer->new_cache();
    if (!cache) fail("bench step: the attention '", spec, "' does not decode step by step. Choose another.");
    for (int64_t at = 0; at < history; at += chunk) attend(std::min(chunk, history - at));
  }

  /// Times the layer on the next `tokens` of a random input.
  void attend(int64_t tokens) {
    Rng rng(2 + static_cast<uint64_t>(cache->length));
    const Tensor x(Shape{1, tokens, width});
    fill_normal(x, 0, 1, rng);
    seconds.push_back(timed([&] {
      layer->forward({.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()});
      synchronize(default_device);
    }));
  }
};

}  // namespace

void bench_step(const ParsedArguments& arguments) {
  const int64_t shortest = arguments.integer("from", 4096), longest = arguments.integer("longest", shortest);
  const int64_t head_dim = integer_option(arguments, "head-dim", 64, 1, 1024),
                rounds = integer_option(arguments, "rounds", 50, 1, 100000);
  const std::vector<std::string> specs =
      after_softmax(spec_arguments(arguments, {"casinoformer:exponent=0.5"}));
  if (shortest < 16 || longest > (int64_t{1} << 20) || longest < shortest)
    fail("bench step: --from ", shortest, " --longest ", longest,
         ". They must be 16 to 1048576, and the second not below the first.");
  const NoGrad no_grad;
  Table table({{"attention", "attention"},
               {"history", "history", 0},
               {"d", "width", 0},
               {"us a token", "us", 1},
               {"softmax / it", "speedup", 2},
               {"kflops", "kflops", 1}},
              arguments.has("json"));
  for (int64_t history = shortest; history <= longest; history *= 2) {
    std::vector<SteppedLayer> layers;
    for (const std::string& spec : specs) layers.emplace_back(spec, head_dim, history);
    std::vector<int64_t> flops(layers.size());
    const ContextSwitches interruptions;
    for (SteppedLayer& one : layers) one.attend(1);  // unmeasured
    for (SteppedLayer& one : layers) one.seconds.clear();
    // In turn, so that what disturbs the machine disturbs all alike.
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < layers.size(); ++i) {
        Count::reset();
        layers[i].attend(1);
        flops[i] = Count::flops();
      }
    }
    const double reference = median(layers[0].seconds);
    for (size_t i = 0; i < layers.size(); ++i) {
      const double taken = median(layers[i].seconds);
      table.row(with_machine_metadata(Json::object({{"attention", Json(layers[i].spec)},
                                                    {"history", history},
                                                    {"width", head_dim},
                                                    {"us", 1e6 * taken},
                                                    {"speedup", reference / taken},
                                                    {"kflops", static_cast<double>(flops[i]) / 1e3},
                                                    {"interruptions_per_s", interruptions.per_second()}})));
    }
  }
}

}  // namespace heed::bench
