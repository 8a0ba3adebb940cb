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
#include <cmath>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/constant_table.h"
#include "heed/core/parallel/recent_values.h"
#include "heed/core/sparse_pattern.h"

namespace heed {
namespace {

struct HatOptions {
  int64_t segment = 128;
  bool cross = true;
  int64_t every = 3, segments = 64;
  void fields(Fields& f) {
    f("segment", segment, {1, max_distance}, "tokens of a segment");
    f("cross", cross, "first tokens of segments attend to each other afterwards");
    f("every", every, {1, 10000}, "they do so in every third layer if 3, and always in the last");
    f("segments", segments, {1, max_positions}, "how many segments have a position");
  }
};

/// Parameters of the cross-segment attention.
struct Across final : Module {
  Tensor query, key, value, positions;
  void fields(Fields& f) override {
    f("query", query);
    f("key", key);
    f("value", value);
    f("positions", positions);
  }
};

class Hat final : public MultiHeadAttention {
 public:
  Hat(const AttentionConfig& config, const HatOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o) {
    const int64_t number = config.layer + 1;
    options_.cross = o.cross && (number % o.every == 0 || number >= config.layers);
    if (!options_.cross) return;
    for (Tensor* projection : {&across_.query, &across_.key, &across_.value})
      *projection = init_weight(config.inner_width(), config.inner_width(), config.init, rng);
    across_.positions = normal_parameter(Shape{o.segments, config.inner_width()}, 0.02, rng);
  }
  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    if (options_.cross) f("cross", across_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override;
  Tensor cross_segment(const Tensor& y, const AttentionInput& input) const;
  Tensor segment_map(const Heads& heads, const AttentionInput& input) const;
  kernel::Pattern make_pattern(int64_t length) const;
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim())); }

  HatOptions options_;
  Across across_;
  RecentValues<int64_t, kernel::Pattern> patterns_;  // by length
};

kernel::Pattern Hat::make_pattern(int64_t length) const {
  kernel::Pattern pattern;
  pattern.queries = pattern.keys = length;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t begin = i / options_.segment * options_.segment,
                  end = std::min(begin + options_.segment, length);
    pattern.first.push_back(i);
    pattern.runs.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end)});
  }
  pattern.first.push_back(length);
  return pattern;
}

/// 0 at tokens, -inf at padding: [B, 1, 1, T] from kept [B, 1, T, 1].
Tensor hidden(const Tensor& kept) { return transpose(log(kept), 2, 3); }

Tensor Hat::segment_map(const Heads& heads, const AttentionInput& input) const {
  const int64_t length = heads.k.extent(2);
  std::vector<float> apart(static_cast<size_t>(length * length), -HUGE_VALF);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = i / options_.segment * options_.segment;
         j < std::min(length, (i / options_.segment + 1) * options_.segment); ++j)
      apart[static_cast<size_t>(i * length + j)] = 0;
  }
  Tensor scores =
      matmul(heads.q, transpose(heads.k, 2, 3)) * scale() +
      constant_table<float>(apart, Shape{1, 1, length, length}, heads.q.device(), heads.q.dtype());
  if (const Tensor mask = input.mask.dense(scores, 0)) scores = scores + mask;
  return softmax(scores);
}

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
    fail("attention 'hat': values of width ", d, " cannot meet across segments, where heads are ", head_dim(),
         " wide. Set cross=false.");
  std::vector<int32_t> first(static_cast<size_t>(segments)), place(static_cast<size_t>(length), -1);
  for (int64_t s = 0; s < segments; ++s) {
    first[static_cast<size_t>(s)] = static_cast<int32_t>(s * options_.segment);
    place[static_cast<size_t>(s * options_.segment)] = static_cast<int32_t>(s);
  }
  const auto ids = [&](const std::vector<int32_t>& list) {
    return constant_table<int32_t>(list, Shape{1, 1, static_cast<int64_t>(list.size())}, y.device());
  };
  const Tensor own = reshape(transpose(gather_rows(y, ids(first)), 1, 2), Shape{batch, segments, h * d});
  const Tensor x = own + slice(across_.positions, 0, 0, segments);
  const auto projected = [&](const Tensor& weight) {
    return transpose(reshape(linear(x, weight, {}), Shape{batch, segments, h, d}), 1, 2);
  };
  const Tensor q = projected(across_.query), k = projected(across_.key);
  Tensor mask;
  if (const Tensor kept = input.mask.padding_mask(y, 0)) mask = hidden(gather_rows(kept, ids(first)));
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    const Tensor scores = matmul(q, transpose(k, 2, 3)) * scale();
    const Tensor map = softmax(mask ? scores + mask : scores);
    // Scatter rows and columns to the first tokens; zero elsewhere.
    const Tensor rows_of_map = gather_rows(map, ids(place));
    input.context.recorder->record(
        across_,
        contiguous(transpose(gather_rows(contiguous(transpose(rows_of_map, 2, 3)), ids(place)), 2, 3)));
  }
  const bool drop = input.context.training() && config().dropout > 0;
  const Tensor crossed = attention(q, k, projected(across_.value),
                                   {.scale = scale(),
                                    .bias = mask,
                                    .dropout = drop ? config().dropout : 0,
                                    .draw = drop ? input.context.rng->next() : Draw{}});
  return y + gather_rows(crossed, ids(place));
}

Tensor Hat::attend(Heads heads, const AttentionInput& input) {
  if (input.mask.bias())
    fail("attention: segments take no bias on their scores. Leave the bias out, or use softmax.");
  if (input.mask.is_causal())
    fail("attention 'hat': it cannot look back only: first tokens see whole segments. Use it in an encoder.");
  if (input.cache != nullptr) fail("attention 'hat': it has no cache. Give all tokens in one call.");
  if (heads.q.extent(2) != heads.k.extent(2))
    fail("attention 'hat': ", heads.q.extent(2), " queries for ", heads.k.extent(2),
         " keys. Both are cut into the same segments, so give as many.");
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    input.context.recorder->record(*this, segment_map(heads, input));
  }
  const kernel::AttentionParams dropped = params(input, scale());
  const int64_t length = heads.k.extent(2);
  const auto pattern = patterns_.get(length, [&] { return make_pattern(length); });
  const Tensor y = pattern_attention(heads.q, heads.k, heads.v,
                                     {.scale = scale(),
                                      .pattern = pattern,
                                      .key_lengths = input.mask.key_lengths(),
                                      .dropout = dropped.dropout,
                                      .draw = dropped.draw});
  return options_.cross ? cross_segment(y, input) : y;
}

}  // namespace

Variant variant::hat() {
  return describe<Hat, HatOptions>(
      {.name = "hat",
       .paper = "Chalkidis et al. 2022",
       .idea = "Softmax inside each segment, then between the first tokens of the segments.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = false,
       .cross = false,
       .steps = false,
       .map = MapKind::stages});
}

}  // namespace heed
