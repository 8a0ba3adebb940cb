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
#include "heed/attention/base/patterned_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct WindowOptions {
  int64_t left = 64, right = 64, dilation = 1, first = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("left", left, {0, max_distance}, "number of keys before its own that a query attends to");
    f("right", right, {0, max_distance}, "number of keys after it; none in a decoder");
    f("dilation", dilation, {1, max_distance}, "distance between neighbouring keys of the window");
    f("first", first, {0, max_distance},
      "number of first keys that every query also attends to: attention sinks");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Window final : public PatternedAttention {
 public:
  Window(const AttentionConfig& config, const WindowOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), options_(o) {}

 private:
  void keys(int64_t, int64_t i, int64_t length, KeySet& out) const override {
    out.add_range(0, options_.first);
    if (options_.dilation == 1) return out.add_range(i - options_.left, i + options_.right + 1);
    const int64_t num_left = std::min(options_.left, i / options_.dilation);
    const int64_t last = std::min(i + options_.right * options_.dilation, length - 1);
    for (int64_t j = i - num_left * options_.dilation; j <= last; j += options_.dilation) out.add(j);
  }
  int64_t window() const override { return options_.left * options_.dilation; }
  int64_t num_first_keys() const override { return options_.first; }

  WindowOptions options_;
};

}  // namespace

Variant variant::window() {
  return describe<Window, WindowOptions>(
      like(sparse_pattern_traits,
           {.name = "window",
            .alias = "band",
            .paper = "Beltagy et al. 2020",
            .summary = "Softmax over the keys around a query: a band of the map, optionally dilated.",
            .cross = true}));
}

}  // namespace heed
