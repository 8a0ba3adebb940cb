// Hierarchical attention transformer: softmax within segments, then between their first tokens. Chalkidis et
// al. 2022, "An exploration of hierarchical attention transformers for efficient long document
// classification", arXiv 2210.05529, as one attention.
//
//   segment-wise    y_i = sum of a_ij v_j over the tokens j of i's segment
//   cross-segment   y_f = y_f + sum over segments g of b_fg W_v x_g,  x_g = y_g + p_g, for first tokens f
//
// Both maps are softmaxes of scaled dot products; the second is between the first tokens of segments, which
// the data layout should fill with a token that represents the segment. As in the paper's interleaved layout,
// the second map is in every third layer and in the last one. The segment positions p are learned, per layer.
// A MapRecorder gets both maps, the second with its rows and columns at the first tokens.
//
// Parameters of cross-segment layers: cross.query, cross.key, cross.value [width, width], heads concatenated;
// cross.positions [segments, width].
#include "heed/attention/base/patterned_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"

namespace heed {
namespace {

struct HatOptions {
  int64_t segment = 128;
  bool cross = true;
  int64_t every = 3, segments = 64;
  void fields(Fields& f) {
    f("segment", segment, {1, max_distance}, "tokens of a segment");
    f("cross", cross, "then the first tokens of segments attend to each other");
    f("every", every, {1, 10000},
      "period of the layers with cross-segment attention; the last always has it");
    f("segments", segments, {1, max_positions}, "number of segments that have a position");
  }
};

/// Parameters of the cross-segment attention.
struct CrossSegment final : Module {
  Tensor query, key, value, positions;
  void fields(Fields& f) override {
    f.matrix("query", query);
    f.matrix("key", key);
    f.matrix("value", value);
    f("positions", positions);
  }
};

class Hat final : public PatternedAttention {
 public:
  Hat(const AttentionConfig& config, const HatOptions& o, Rng& rng)
      : PatternedAttention(config, rng), options_(o) {
    const int64_t number = config.layer + 1;
    options_.cross = o.cross && (number % o.every == 0 || number >= config.layers);
    if (!options_.cross) return;
    for (Tensor* projection : {&cross_.query, &cross_.key, &cross_.value})
      *projection = init_weight(config.inner_width(), config.inner_width(), config.init, rng);
    cross_.positions = normal_parameter(Shape{o.segments, config.inner_width()}, 0.02, rng);
  }
  // There is no cache: tokens attend to later ones.
  std::unique_ptr<AttentionCache> new_cache() const override { return nullptr; }
  void fields(Fields& f) override {
    PatternedAttention::fields(f);
    if (options_.cross) f("cross", cross_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override;
  Tensor cross_segment(const Tensor& y, const AttentionInput& input) const;
  void keys(int64_t, int64_t i, int64_t, KeySet& out) const override {
    const int64_t begin = i / options_.segment * options_.segment;
    out.add_range(begin, begin + options_.segment);
  }

  HatOptions options_;
  CrossSegment cross_;
};

/// Cross-segment attention: y [B, H, T, d] -> y with updated first tokens.
Tensor Hat::cross_segment(const Tensor& y, const AttentionInput& input) const {
  const int64_t batch = y.extent(0), h = y.extent(1), length = y.extent(2), d = y.extent(3);
  const int64_t segments = (length + options_.segment - 1) / options_.segment;
  if (segments > options_.segments) {
    fail("attention 'hat': ", length, " tokens are ", segments, " segments of ", options_.segment,
         ", but only ", options_.segments, " have a position. Set segments=", segments,
         " or a larger segment.");
  }
  if (d != head_dim())
    fail("attention 'hat': values of width ", d, " do not fit cross-segment attention, whose heads are ",
         head_dim(), " wide. Set cross=false.");
  std::vector<int32_t> first_tokens;  // position of each segment's first token
  std::vector<int32_t> segment_of(static_cast<size_t>(length),
                                  -1);  // segment of each first token, -1 for others
  for (int64_t s = 0; s < segments; ++s) {
    first_tokens.push_back(static_cast<int32_t>(s * options_.segment));
    segment_of[static_cast<size_t>(s * options_.segment)] = static_cast<int32_t>(s);
  }
  const auto ids = [&](const std::vector<int32_t>& list) {
    return constant_table<int32_t>(list, Shape{1, 1, static_cast<int64_t>(list.size())}, y.device());
  };
  const Tensor first_ids = ids(first_tokens), segment_ids = ids(segment_of);
  const Tensor joined = reshape(transpose(gather_rows(y, first_ids), 1, 2), Shape{batch, segments, h * d});
  const Tensor x = joined + slice(cross_.positions, 0, 0, segments);
  const auto projected = [&](const Tensor& weight) {
    return transpose(reshape(linear(x, weight, {}), Shape{batch, segments, h, d}), 1, 2);
  };
  const Tensor q = projected(cross_.query), k = projected(cross_.key);
  kernel::AttentionParams call = params(input, scale(q));
  if (const Tensor kept = input.mask.padding_mask(y, 0))  // 0 at tokens, -inf at padding: [B, 1, 1, segments]
    call.bias = transpose(log(gather_rows(kept, first_ids)), 2, 3);
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    const Mask mask = call.bias ? Mask::none().with(call.bias) : Mask::none();
    // Rows and columns are scattered to the first tokens; other entries are 0.
    const Tensor rows = gather_rows(softmax_map(q, k, call.scale, mask, 0), segment_ids);
    const Tensor columns = gather_rows(contiguous(transpose(rows, 2, 3)), segment_ids);
    input.context.recorder->record(cross_, contiguous(transpose(columns, 2, 3)));
  }
  return y + gather_rows(attention(q, k, projected(cross_.value), call), segment_ids);
}

Tensor Hat::attend(Heads heads, const AttentionInput& input) {
  refuse_bias(input, "segment-wise attention");
  if (input.mask.is_causal())
    fail(
        "attention 'hat': it cannot be causal: first tokens attend to whole segments. Use it in an encoder.");
  if (input.cache != nullptr) fail("attention 'hat': it has no cache. Give all tokens in one call.");
  check_equal_lengths("hat", heads.q.extent(2), heads.k.extent(2),
                      "Both are cut into the same segments, so give as many.");
  record_map(input, [&] { return dense_map(heads, input, 0); });
  const Tensor y = attend_pattern(heads, input, 0);
  return options_.cross ? cross_segment(y, input) : y;
}

}  // namespace

Variant variant::hat() {
  return describe<Hat, HatOptions>(
      {.name = "hat",
       .paper = "Chalkidis et al. 2022",
       .summary = "Softmax inside each segment, then between the first tokens of the segments.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .map = MapKind::stages});
}

}  // namespace heed
