// Sliding-window attention, optionally dilated and with attention sinks. Beltagy et al. 2020, "Longformer",
// arXiv 2004.05150, section 3.1; Jiang et al. 2023, "Mistral 7B", arXiv 2310.06825, whose window W is left =
// W - 1, right = 0. The band softmax of Conti 2024 is left = right = w.
//
//   y_i = sum_j a_ij v_j,      a_i = softmax_j(q_i . k_j / sqrt(d)) over j < first and
//   j = i + m dilation, -left <= m <= right
//
// The first keys are the attention sinks of Xiao et al. 2023, "Efficient streaming language models with
// attention sinks", arXiv 2309.17453 (4 of them); here they keep their positions in the text.
//
// No parameters of its own. A decoder caches the last left * dilation keys and values, and the first ones.
#include "heed/attention/base/patterned.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct WindowOptions {
  int64_t left = 64, right = 64, dilation = 1, first = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("left", left, {0, max_distance}, "how many keys before its own a query sees");
    f("right", right, {0, max_distance}, "how many after it; a decoder sees none of them");
    f("dilation", dilation, {1, max_distance}, "the distance between keys that it sees");
    f("first", first, {0, max_distance},
      "how many keys at the start every query sees besides: attention sinks");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Window final : public PatternedAttention {
 public:
  Window(const AttentionConfig& config, const WindowOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), o_(o) {}

 private:
  void keys(int64_t, int64_t i, int64_t length, KeySet& out) const override {
    out.range(0, o_.first);
    if (o_.dilation == 1) return out.range(i - o_.left, i + o_.right + 1);
    const int64_t back = std::min(o_.left, i / o_.dilation);
    const int64_t last = std::min(i + o_.right * o_.dilation, length - 1);
    for (int64_t j = i - back * o_.dilation; j <= last; j += o_.dilation) out.one(j);
  }
  int64_t reach() const override { return o_.left * o_.dilation; }
  int64_t anchors() const override { return o_.first; }

  WindowOptions o_;
};

}  // namespace

Variant variant::window() {
  return describe<Window, WindowOptions>(
      {.name = "window",
       .also = "band",
       .paper = "Beltagy et al. 2020",
       .idea = "Softmax over the neighbours of a query: a band of the map, dilated or not.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .cross = true,
       .steps = true,
       .map = MapKind::exact,
       .from = 1024});
}

}  // namespace heed
