// Longformer: a sliding window, plus a few global tokens that attend to all and that all attend to. Beltagy
// et al. 2020, "Longformer: the long-document Transformer", arXiv 2004.05150, section 3.
//
//   i local:   a_i = softmax over |i - j| <= w e, (i - j) mod e = 0, and the global j, of q_i . k_j / sqrt(d)
//   i global:  a_i = softmax over all j of q'_i . k'_j / sqrt(d),  y_i = sum_j a_ij v'_j
//
// The first g tokens are global; a global key within the window counts once. A decoder has no global tokens,
// caches the last w e keys, and equals `window` of that width.
//
// Parameters: query_global, key_global, value_global: the projections of global queries q' and of their keys
// k' and values v' (not in a decoder), initialised as copies of query, key and value. Optional inputs of one
// call, before qk_norm and rope, instead of these projections: global_queries [B, H, g, D], global_keys
// [B, H, N, D], global_values [B, H, N, Dv] (keys and values may have fewer heads). In on_heads() without
// them, q' = q, k' = k, v' = v.
#include <cmath>

#include "heed/attention/base/patterned.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

struct LongformerOptions {
  int64_t window = 64, global = 1, dilation = 1, dilated_heads = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("window", window, {0, max_distance}, "w, how many keys to either side a local query sees");
    f("global", global, {0, max_distance}, "g, how many tokens at the start are global; a decoder has none");
    f("dilation", dilation, {1, max_distance}, "e, the distance between keys of a window");
    f("dilated_heads", dilated_heads, {0, max_width}, "how many heads, the last ones, are dilated; 0: all");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

Linear copy_of(const Linear& from, const AttentionConfig& config, Rng& rng) {
  Linear to(from.weight.extent(1), from.weight.extent(0), rng, {.bias = config.input_bias});
  launch<kernel::Copy>(to.weight.device(), from.weight.detach(), to.weight.detach());
  return to;
}

class Longformer final : public PatternedAttention {
 public:
  Longformer(const AttentionConfig& config, const LongformerOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), o_(o) {
    if (o.dilated_heads < 0 || o.dilated_heads > config.heads) {
      fail("attention 'longformer': dilated_heads = ", o.dilated_heads, ". There are ", config.heads,
           " heads.");
    }
    if (config.causal) o_.global = 0;
    if (o_.global == 0) return;
    query_global = copy_of(query, config, rng);
    key_global = copy_of(key, config, rng);
    value_global = copy_of(value, config, rng);
  }
  void fields(Fields& f) override {
    PatternedAttention::fields(f);
    if (o_.global == 0) return;
    f("query_global", query_global);
    f("key_global", key_global);
    f("value_global", value_global);
    f("global_queries", global_queries_);
    f("global_keys", global_keys_);
    f("global_values", global_values_);
  }

  Linear query_global, key_global, value_global;

 private:
  bool same_for_all_heads() const override { return o_.dilation == 1 || o_.dilated_heads == 0; }

  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const override {
    if (i < o_.global) return;  // global queries are computed separately
    out.range(0, o_.global);
    const bool dilated = o_.dilated_heads == 0 || head >= config().heads - o_.dilated_heads;
    const int64_t e = dilated ? o_.dilation : 1;
    if (e == 1) return out.range(i - o_.window, i + o_.window + 1);
    const int64_t last = std::min(i + o_.window * e, length - 1);
    for (int64_t j = i - std::min(o_.window, i / e) * e; j <= last; j += e) out.one(j);
  }
  int64_t reach() const override { return o_.global == 0 ? o_.window * o_.dilation : -1; }

  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (o_.global == 0) return PatternedAttention::attend(std::move(heads), input);
    if (input.mask.bias())
      fail("attention: a sparse pattern takes no bias on its scores. Leave the bias out, or use softmax.");
    if (input.mask.is_causal())
      fail("attention 'longformer': global tokens look ahead. Use it without a causal mask, or global=0.");
    const int64_t first_query = read_cache(heads, input);
    if (input.cache != nullptr)
      fail("attention 'longformer': global tokens see all keys, so it has no cache. Give all in one call.");
    const int64_t queries = heads.q.extent(2);
    const int64_t n = std::clamp<int64_t>(o_.global - first_query, 0, queries);
    const Heads far = global_heads(heads, input, n);
    if (input.context.recorder != nullptr) {
      const NoGrad no_grad;
      Tensor scores = score(far.q, repeated(far.k, far.q.extent(1)), input);
      if (const Tensor mask = input.mask.dense(scores, 0)) scores = scores + mask;
      const Tensor local = slice(dense_map(heads, input, first_query), 2, n, queries);
      input.context.recorder->record(*this, concat(std::vector<Tensor>{softmax(scores), local}, 2));
    }
    const Tensor local = slice(attend_pattern(heads, input, first_query), 2, n, queries);
    const bool drop = input.context.training() && config().dropout > 0;
    const Tensor global = attention(far.q, far.k, far.v,
                                    {.scale = scale(far.q),
                                     .key_lengths = input.mask.key_lengths(),
                                     .dropout = drop ? config().dropout : 0,
                                     .draw = drop ? input.context.rng->next() : Draw{}});
    return concat(std::vector<Tensor>{global, local}, 2);
  }

  /// Heads of global attention: the first n queries, and all keys and values.
  Heads global_heads(const Heads& heads, const AttentionInput& input, int64_t n) const {
    const bool alone = !input.queries || !input.keys;  // on_heads(): qk_norm and rope are applied
    Heads far;
    if (const Tensor q = given(global_queries_, "global_queries", heads.q, n))
      far.q = modifiers().ready_query(q, 0);
    else
      far.q = alone ? slice(heads.q, 2, 0, n)
                    : modifiers().ready_query(split(query_global(slice(input.queries, 1, 0, n))), 0);
    if (const Tensor k = given(global_keys_, "global_keys", heads.k, heads.k.extent(2)))
      far.k = modifiers().ready_key(k, 0);
    else
      far.k = alone ? heads.k : modifiers().ready_key(split(key_global(input.keys)), 0);
    far.v = given(global_values_, "global_values", heads.v, heads.v.extent(2));
    if (!far.v) far.v = alone ? heads.v : split(value_global(input.keys));
    far.k = repeated(far.k, far.q.extent(1));
    far.v = repeated(far.v, far.q.extent(1));
    return far;
  }

  /// A user-given tensor `place` (the field `name`) of `rows` rows like those of x; empty when not given.
  static Tensor given(const Tensor& place, const char* name, const Tensor& x, int64_t rows) {
    if (!place) return {};
    Shape wanted = x.shape();
    wanted[2] = rows;
    Shape shape = place.shape();
    const bool shared = shape.rank() == 4 && shape[1] > 0 && wanted[1] % shape[1] == 0;
    if (shared) shape[1] = wanted[1];
    if (shape != wanted)
      fail("attention 'longformer': ", name, " is ", place.shape(), "; it must be ", wanted,
           ", or of fewer heads that divide these.");
    return place;
  }

  LongformerOptions o_;
  Tensor global_queries_, global_keys_, global_values_;
};

}  // namespace

Variant variant::longformer() {
  return describe<Longformer, LongformerOptions>(
      {.name = "longformer",
       .paper = "Beltagy et al. 2020",
       .idea = "A sliding window, and a few tokens that see all and are seen by all.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .steps = true,
       .map = MapKind::exact,
       .from = 1024});
}

}  // namespace heed
