// Compares sparse variants with plain loops over the pairs that they allow, and with each other.
#pragma once

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/tests/attention/reference/patterns.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed::sparse {

using reference::Meets;
using test::distance;

/// The settings of an attention of heads of width d.
inline AttentionConfig config_for(int64_t heads, int64_t d, int64_t length) {
  return {.d_model = heads * d, .heads = heads, .max_length = length};
}

/// The attention of a spec, drawn from a seed.
inline std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& config,
                                       uint64_t seed = 1) {
  Rng rng(seed);
  return make_attention(spec, config, rng);
}

/// The attention as one of several heads.
inline MultiHeadAttention& multi_head(Attention& attention) {
  return dynamic_cast<MultiHeadAttention&>(attention);
}

/// A tensor of a module by its name.
inline Tensor find(Module& module, const std::string& name) {
  for (const Named& named : tensors(module)) {
    if (named.name == name) return *named.tensor;
  }
  fail("no tensor ", name);
}

/// Batch, heads, tokens, and the widths of keys and values.
struct Sizes {
  int64_t B, H, N, d, dv;
};

/// Sizes at and beside the limits of blocks and windows.
inline const std::vector<Sizes> sizes{{1, 1, 1, 1, 1},  {2, 2, 2, 3, 2},  {2, 2, 17, 4, 3},
                                      {1, 1, 17, 1, 2}, {1, 3, 67, 8, 8}, {2, 1, 150, 5, 9}};

/// Heads of an attention as leaves, with a direction for the gradient.
struct Inputs {
  Heads heads;
  Tensor direction;
  explicit Inputs(const Sizes& s, DType dtype = DType::f64)
      : heads{leaf(test::heads(s.B, s.H, s.N, s.d, dtype, 1)),
              leaf(test::heads(s.B, s.H, s.N, s.d, dtype, 2)),
              leaf(test::heads(s.B, s.H, s.N, s.dv, dtype, 3))},
        direction(test::heads(s.B, s.H, s.N, s.dv, dtype, 4)) {}
};

/// Which attentions of a model a variant can be: all, or self-attention alone.
enum class Use { both, self };

/// The pairs of an attention of these sizes.
using MeetsOf = std::function<Meets(Attention&, const Sizes&)>;

/// Output and gradients of a variant against plain loops, causal and padded too.
inline void compare(const std::string& spec, const MeetsOf& meets_of, const AttentionConfig& config = {},
                    Use use = Use::both) {
  for (const Sizes& s : sizes) {
    for (const bool causal : {false, true}) {
      if (use == Use::self && causal) continue;
      for (const bool padded : {false, true}) {
        CAPTURE(spec, s.N, s.d, causal, padded);
        AttentionConfig mine = config;
        mine.d_model = s.H * s.d;
        mine.heads = s.H;
        mine.max_length = s.N;
        mine.causal = causal;
        const auto attention = made(spec, mine);
        const Meets meets = meets_of(*attention, s);
        const Inputs in(s);
        std::vector<int32_t> lengths(static_cast<size_t>(s.B), static_cast<int32_t>(s.N));
        if (padded) lengths.back() = static_cast<int32_t>(2 * s.N / 3);
        Mask mask = causal ? Mask::causal() : Mask::none();
        if (padded) mask = mask & Mask::lengths(Tensor::of<int32_t>(lengths, Shape{s.B}));
        const Tensor y = multi_head(*attention).on_heads(in.heads, {.mask = mask});
        backward(sum(y * in.direction));
        const auto want = test::reference(
            in.heads.q, in.heads.k, in.heads.v, in.direction,
            {.scale = 1 / std::sqrt(static_cast<double>(s.d)),
             .seen = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
               return (!causal || j <= i) && j < lengths[static_cast<size_t>(b)] && meets(h, i, j, s.N);
             }});
        CHECK(distance(y, want.out) < 1e-12);
        CHECK(distance(grad_of(in.heads.q), want.dq) < 1e-12);
        CHECK(distance(grad_of(in.heads.k), want.dk) < 1e-12);
        CHECK(distance(grad_of(in.heads.v), want.dv) < 1e-12);
      }
    }
  }
}

/// Compares a variant whose pairs do not depend on what it draws.
inline void compare(const std::string& spec, const Meets& meets, const AttentionConfig& config = {},
                    Use use = Use::both) {
  compare(spec, MeetsOf([&](Attention&, const Sizes&) { return meets; }), config, use);
}

/// Output and gradients of two attentions on the same heads.
inline double apart(const std::string& a, const std::string& b, const Sizes& s, bool causal) {
  AttentionConfig config = config_for(s.H, s.d, s.N);
  config.causal = causal;
  std::vector<std::vector<double>> found;
  for (const std::string& spec : {a, b}) {
    const auto attention = made(spec, config);
    const Inputs in(s);
    const Tensor y =
        multi_head(*attention).on_heads(in.heads, {.mask = causal ? Mask::causal() : Mask::none()});
    backward(sum(y * in.direction));
    for (const Tensor& x : {y, grad_of(in.heads.q), grad_of(in.heads.k), grad_of(in.heads.v)})
      found.push_back(x.to_doubles());
  }
  double worst = 0;
  for (size_t i = 0; i < 4; ++i) worst = std::max(worst, distance(found[i], found[i + 4]));
  return worst;
}

/// The map of head h: N x N.
inline std::vector<double> map_of(const std::string& spec, const AttentionConfig& config, int64_t N,
                                  int64_t h = 0, uint64_t seed = 1) {
  const auto attention = made(spec, config, seed);
  const Inputs in({1, config.heads, N, config.d_model / config.heads, 2});
  MapRecorder recorder;
  multi_head(*attention).on_heads(in.heads, {.context = {.recorder = &recorder}});
  return view::slice(recorder.maps.at(0).weights, 1, h, h + 1).to_doubles();
}

}  // namespace heed::sparse
