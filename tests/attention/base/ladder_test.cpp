// Runs the battery on attentions defined in this file, one on each rung of the ladder.
#include <cmath>

#include "heed/attention/base/kernelized_attention.h"
#include "heed/attention/base/patterned_attention.h"
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"
#include "heed/tests/nn/plain_attention.h"

namespace heed {
namespace {

void hold_everything(const Variant& variant) {
  for (const battery::Property& property : battery::properties()) {
    CAPTURE(property.name);
    const battery::Report report = battery::over_all_settings(variant, property.holds);
    INFO(report);
    CHECK(report.empty());
  }
}

// Rung 1: keys().
struct WindowOptions {
  int64_t reach = 24;
  void fields(Fields& f) { f("reach", reach, "how far a query looks to either side"); }
};

class Window final : public PatternedAttention {
 public:
  Window(const AttentionConfig& config, const WindowOptions& o, Rng& rng)
      : PatternedAttention(config, rng), reach_(o.reach) {}

 private:
  void keys(int64_t, int64_t i, int64_t, KeySet& out) const override {
    out.add_range(i - reach_, i + reach_ + 1);
  }
  int64_t reach_;
};

// Two heads that look elsewhere, in runs out of order that overlap.
class Mixed final : public PatternedAttention {
 public:
  Mixed(const AttentionConfig& config, const NoOptions&, Rng& rng) : PatternedAttention(config, rng) {}

 private:
  bool heads_share_pattern() const override { return false; }
  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const override {
    out.add_range(i - 2 - head, i + 1);
    out.add(i);
    out.add_range(0, 3);
    out.add_range(length, length + 5);
  }
};

// Rung 2: score().
class Dot final : public ScoredAttention {
 public:
  Dot(const AttentionConfig& config, const NoOptions&, Rng& rng) : ScoredAttention(config, rng) {}

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    return matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(head_dim())));
  }
};

// Rung 2: score() and weigh(), a map that does not sum to one.
class Sigmoid final : public ScoredAttention {
 public:
  Sigmoid(const AttentionConfig& config, const NoOptions&, Rng& rng) : ScoredAttention(config, rng) {}

 private:
  Tensor score(const Tensor& q, const Tensor& k, const AttentionInput&) const override {
    return matmul(q, transpose(k, 2, 3));
  }
  Tensor weigh(const Tensor& scores, const Tensor&, const AttentionInput&) const override {
    return sigmoid(scores);
  }
};

// Rung 2': feature().
class BothSigns final : public KernelizedAttention {
 public:
  BothSigns(const AttentionConfig& config, const NoOptions&, Rng& rng)
      : KernelizedAttention(config, 1e-6, rng) {}

 private:
  Tensor feature(const Tensor& x) const override {
    return concat(std::vector<Tensor>{exp(tanh(x)), exp(-tanh(x))}, 3);
  }
};

// Rung 3: attend(). Softmax over features for queries and over positions for keys (Shen et al. 2018):
// self-attention only.
class Efficient final : public MultiHeadAttention {
 public:
  Efficient(const AttentionConfig& config, const NoOptions&, Rng& rng) : MultiHeadAttention(config, rng) {}

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    if (input.mask.key_lengths())
      fail("attention 'efficient': it takes no key lengths. Use batches of one length.");
    if (input.mask.bias()) fail("attention 'efficient': it takes no bias on scores. Leave it out.");
    if (input.cache != nullptr) fail("attention 'efficient': it has no cache. Give all keys in one call.");
    const Tensor q = softmax(heads.q), k = softmax(transpose(heads.k, 2, 3));  // [B, H, T, d], [B, H, d, T]
    if (input.context.recorder != nullptr) input.context.recorder->record(*this, matmul(q, k));
    return matmul(q, matmul(k, heads.v));
  }
};

// Rung 4: forward().
class Own final : public Attention {
 public:
  Own(const AttentionConfig& config, const NoOptions&, Rng& rng) : inner(config, rng) {}
  Tensor forward(const AttentionInput& input) override {
    AttentionInput within = input;
    MapRecorder recorder;
    if (input.context.recorder != nullptr) within.context.recorder = &recorder;
    const Tensor y = inner.forward(within);
    for (const MapRecorder::Map& map : recorder.maps) input.context.recorder->record(*this, map.weights);
    return y;
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return inner.new_cache(); }
  void fields(Fields& f) override { f("inner", inner); }
  PlainAttention inner;
};

constexpr Traits pairs{.name = "",
                       .time = {2, 1},
                       .memory = {2, 0},
                       .causal = true,
                       .cross = true,
                       .steps = true,
                       .map = MapKind::exact};

Traits named(Traits traits, const char* name) {
  traits.name = name;
  return traits;
}

}  // namespace

TEST_CASE("ladder: keys, a sliding window", "[battery]") {
  Traits traits = named(pairs, "window");
  traits.time = traits.memory = {1, 1};
  hold_everything(describe<Window, WindowOptions>(traits));
}

TEST_CASE("ladder: keys, runs that overlap and differ by head", "[battery]") {
  const Variant mixed = describe<Mixed>(named(pairs, "mixed"));
  for (const battery::Property& property : battery::properties()) {
    if (std::string(property.name) == "cost") continue;  // ten keys a query: tiles hide how the few grow
    const battery::Report report = battery::over_all_settings(mixed, property.holds);
    INFO(property.name << ": " << report);
    CHECK(report.empty());
  }
}

TEST_CASE("ladder: score", "[battery]") { hold_everything(describe<Dot>(named(pairs, "dot"))); }

TEST_CASE("ladder: score and weigh", "[battery]") {
  Traits traits = named(pairs, "sigmoid");
  traits.map = MapKind::signed_;
  hold_everything(describe<Sigmoid>(traits));
}

TEST_CASE("ladder: feature", "[battery]") {
  Traits traits = named(pairs, "both_signs");
  traits.time = {1, 2};
  traits.memory = {1, 1};
  hold_everything(describe<BothSigns>(traits));
}

TEST_CASE("ladder: attend, with traits that deny", "[battery]") {
  hold_everything(describe<Efficient>(
      {.name = "efficient", .time = {1, 2}, .memory = {1, 1}, .padding = false, .map = MapKind::exact}));
}

TEST_CASE("ladder: forward", "[battery]") { hold_everything(describe<Own>(named(pairs, "own"))); }

}  // namespace heed
