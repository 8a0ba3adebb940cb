// Multi-head latent attention: keys and values of all heads are projected from one cached latent vector.
// DeepSeek-AI 2024, "DeepSeek-V2", arXiv 2405.04434, section 2.1.
//
//   c_t = norm(W_down x_t),      k_t,h = [W_uk,h c_t, rope(W_kr x_t)],      v_t,h = W_uv,h c_t,
//   q_t,h = [W_q,h x_t, rope(W_qr,h x_t)],      scores q . k / sqrt(d + r)
//
// All heads share one rotated key of width r = `turned`. A decoder caches c and that key only: it applies
// W_uk to queries and W_uv to outputs, so that c itself is the shared key and value. Parameters: query.weight
// [H (d + r), width], down.weight [rank, width], gain [rank], up_key.weight [H d, rank], up_value.weight [H
// d, rank], turned_key.weight [r, width], output.weight [width, width].
#include <algorithm>
#include <cmath>

#include "heed/attention/base/grouped_query.h"
#include "heed/attention/base/head_edits.h"
#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/base/rotary_angles.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct MlaOptions {
  int64_t rank = 0, turned = 0;
  double base = 10000;
  void fields(Fields& f) {
    f("rank", rank, {0, max_width}, "width of the cached latent vector; 0: four heads");
    f("turned", turned, {0, max_width}, "width of the shared rotated key, even; 0: half a head");
    f("base", base, "its slowest pair rotates by about 1 / base per position");
  }
};

/// Checks the options and the width of heads, and replaces zeros by their defaults.
MlaOptions with_defaults(MlaOptions o, const AttentionConfig& config) {
  query_width(config);  // fails when the heads do not divide the width
  const int64_t d = config.width_of_head();
  if (o.turned % 2 != 0) fail("attention 'mla': turned = ", o.turned, ". It must be even.");
  if (!(o.base > 1)) fail("attention 'mla': base = ", o.base, ". It must be above 1.");
  if (o.rank == 0) o.rank = 4 * d;
  if (o.turned == 0) o.turned = std::max<int64_t>(2, d / 4 * 2);
  return o;
}

class LatentAttention final : public Attention {
 public:
  LatentAttention(const AttentionConfig& config, const MlaOptions& options, Rng& rng)
      : config_(config),
        options_(with_defaults(options, config)),
        d_(config.width_of_head()),
        query_(config.d_model, config.heads * (d_ + options_.turned), rng,
               {.bias = config.query_bias, .init = config.init}),
        down_(config.d_model, options_.rank, rng, {.bias = false, .init = config.init}),
        up_key_(options_.rank, config.inner_width(), rng, {.bias = false, .init = config.init}),
        up_value_(options_.rank, config.inner_width(), rng, {.bias = false, .init = config.init}),
        turned_key_(config.d_model, options_.turned, rng, {.bias = false, .init = config.init}),
        output_(config.inner_width(), config.d_model, rng,
                {.bias = config.output_bias, .init = config.init, .gain = config.output_gain}),
        gain_(constant_parameter(Shape{options_.rank}, 1)) {}
  bool takes_packed(const AttentionInput& input) const override {
    return !config_.cross && !has_trained_bias(input) && input.context.may_pack();
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<KeyValueCache>(); }
  void fields(Fields& f) override {
    f("query", query_);
    f("down", down_);
    f("gain", gain_);
    f("up_key", up_key_);
    f("up_value", up_value_);
    f("turned_key", turned_key_);
    f("output", output_);
  }

  Tensor forward(const AttentionInput& given) override {
    const ModuleScope within(this);
    check_call(given, config_);
    const AttentionInput input = with_finite_padding(given, config_.cross);
    auto* cache = cache_of<KeyValueCache>(input);
    if (!input.keys) fail("attention: no keys were given. Each query brings its own key here.");
    const int64_t first_key = cache != nullptr ? cache->length : 0;
    const int64_t first_query = cache != nullptr ? first_key : input.keys.extent(1) - input.queries.extent(1);
    const Tensor q = by_heads(query_(input.queries), config_.heads);  // [B, H, Tq, d + r]
    const Tensor content_q = slice(q, 3, 0, d_);
    const Tensor rotated_q =
        rotated(slice(q, 3, d_, d_ + options_.turned), first_query, input.mask.query_packing().get());
    // One key-value head, which is cached: its key is the shared rotated key, its value the latent vector.
    const Tensor c = down_(input.keys);
    const Tensor latent = c / sqrt(mean(square(c), 2) + 1e-6) * gain_;
    Heads cached{
        .q = {},
        .k = rotated(by_heads(turned_key_(input.keys), 1), first_key, input.mask.key_packing().get()),
        .v = by_heads(latent, 1)};
    if (cache != nullptr) {
      cache->append_to_cache(cached);
      cache->queries += input.queries.extent(1);
    }
    const auto values_of_latent = [&](const Tensor& y) {
      return matmul(y, transpose(by_rows(up_value_), 1, 2));
    };
    const auto attended = [&](const AttentionInput& call) {
      if (cache != nullptr) {
        const Tensor latent_q = matmul(content_q, by_rows(up_key_));  // [B, H, Tq, rank]
        return values_of_latent(
            attend(joined(latent_q, rotated_q), joined(cached.v, cached.k), cached.v, call, first_query));
      }
      const Tensor keys = by_heads(up_key_(latent), config_.heads),
                   values = by_heads(up_value_(latent), config_.heads);
      return attend(joined(content_q, rotated_q), joined(keys, repeat_heads(cached.k, config_.heads)), values,
                    call, first_query);
    };
    const auto product = [&](const Tensor& map) {
      return values_of_latent(matmul(map, repeat_heads(cached.v, config_.heads)));
    };
    const Tensor y =
        input.context.editor == nullptr ? attended(input) : edited_heads(*this, input, attended, product);
    return output_(reshape(transpose(y, 1, 2), Shape{y.extent(0), y.extent(2), -1}));
  }

 private:
  /// [B, T, H w] -> [B, H, T, w], a view.
  static Tensor by_heads(const Tensor& x, int64_t heads) {
    return transpose(reshape(x, Shape{x.extent(0), x.extent(1), heads, -1}), 1, 2);
  }
  static Tensor joined(const Tensor& a, const Tensor& b) { return concat(std::vector<Tensor>{a, b}, 3); }
  /// The weights of a projection from the latent vector as [H, d, rank].
  Tensor by_rows(const Linear& linear) const {
    return reshape(linear.weight, Shape{config_.heads, d_, options_.rank});
  }
  /// Applies rope to x [B, H, T, r]; row 0 has position `first`.
  Tensor rotated(const Tensor& x, int64_t first, const Packing* packing) const {
    return angles_.rotated(x, first, packing, options_.base, kernel::RotaryPairs::halves);
  }
  /// True where the mask has a bias that gets a gradient, which attention by tiles does not compute.
  static bool has_trained_bias(const AttentionInput& input) {
    return input.mask.bias() && input.mask.bias().node() && recording();
  }

  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionInput& input,
                int64_t first_query) {
    const double scale = 1 / std::sqrt(static_cast<double>(d_ + options_.turned));
    const auto map = [&] {
      return softmax_map(q, repeat_heads(k, config_.heads), scale, input.mask, first_query);
    };
    if (input.context.recorder != nullptr) {
      const NoGrad no_grad;
      input.context.recorder->record(*this, map());
    }
    if (has_trained_bias(input))
      return matmul(dropout(map(), config_.dropout, input.context.rng), repeat_heads(v, config_.heads));
    return attention(q, k, v, masked_attention_params(input, scale, config_.dropout, first_query));
  }

  AttentionConfig config_;
  MlaOptions options_;
  int64_t d_;
  Linear query_, down_, up_key_, up_value_, turned_key_, output_;
  Tensor gain_;  // [rank]
  RotaryAngles angles_;
};

}  // namespace

Variant variant::mla() {
  return describe<LatentAttention, MlaOptions>(
      {.name = "mla",
       .alias = "latent",
       .paper = "DeepSeek-AI 2024",
       .summary =
           "Keys and values of all heads are projected from one latent vector, and only that is cached.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .steps = true,
       .map = MapKind::exact});
}

}  // namespace heed
