// ProbSparse attention: only queries with peaked sampled scores attend to all keys. Zhou et al. 2021,
// "Informer: beyond efficient transformer for long sequence time-series forecasting", arXiv 2012.07436,
// section 3.
//
//   M_i = max_u q_i . k_u - sum_u q_i . k_u / M        over c ceil(ln M) sampled keys u
//
// The c ceil(ln N) queries with the largest M_i attend to all keys by softmax; the other ("lazy") queries get
// the mean of the values or, when causal, the sum of the values so far. The selection has no gradient. The
// division is by the number of keys, as in the authors' code.
//
// The published decoder (strict = false) samples later keys and compares with later queries, so its selection
// depends on them. With strict = true (the default) it does not: keys are sampled up to the query, the mean
// is over the sample, and a query is selected if fewer than c earlier queries reach its measure. This selects
// about c ln N queries, at most the first 2 c ceil(ln N).
//
// Parameters: samples [N, U], optional: the indices of the keys that each query samples, for all heads.
// Otherwise they depend on the length alone, or are redrawn at each training step (resample).
#include <algorithm>

#include "heed/attention/base/multi_head_attention.h"
#include "heed/attention/variant.h"
#include "heed/core/kernels/content/prob_sparse.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

enum class Lazy { published, mean };

struct InformerOptions {
  int64_t factor = 5;
  Lazy lazy = Lazy::published;
  bool strict = true;
  bool resample = false;
  double scale = 0;
  void fields(Fields& f) {
    f("factor", factor, {1, max_width}, "c: c log(length) queries are selected, by as many sampled keys");
    f("lazy", Choice(lazy, {"published", "mean"}),
      "output of the other queries of a decoder: the sum of the values so far, or their mean");
    f("strict", strict, "a decoder's selection does not depend on later tokens");
    f("resample", resample, "new samples at each call while training");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class InformerAttention final : public MultiHeadAttention {
 public:
  InformerAttention(const AttentionConfig& config, const InformerOptions& o, Rng& rng)
      : MultiHeadAttention(config, rng), options_(o), scale_(attention_scale(o.scale, head_dim())) {}

  void fields(Fields& f) override {
    MultiHeadAttention::fields(f);
    f("samples", samples_);
  }

 private:
  Tensor attend(Heads heads, const AttentionInput& input) override {
    refuse_bias_and_cache("informer", input);
    const int64_t queries = heads.q.extent(2), keys = heads.k.extent(2);
    const bool causal = input.mask.is_causal();
    if (causal && queries != keys)
      fail("attention 'informer': ", queries, " causal queries for ", keys, " keys. Give as many of each.");
    const Tensor ids = selected_queries(heads, input), kept = input.mask.padding_mask(heads.k, 0);
    const Shape rows{heads.q.extent(0), heads.q.extent(1), ids.extent(2), 1};
    const Tensor is_selected =
        scatter_add_rows(Tensor::full(rows, 1, heads.q.dtype(), heads.q.device()), ids, queries);
    kernel::AttentionParams call = params(input, scale_);
    call.key_lengths = input.mask.key_lengths();
    const Tensor q = gather_rows(heads.q, ids);
    if (causal) {
      call.bias = empty_like(q, Shape{rows[0], rows[1], rows[2], keys});
      launch<kernel::PrefixBias>(q.device(), ids, call.bias);
    }
    // The outputs of all queries, from those that lazy queries have [B, H, N, w] and selected ones [B, H, n,
    // w].
    const auto joined = [&](const Tensor& lazy, const Tensor& selected) {
      return lazy * (-is_selected + 1) + scatter_add_rows(selected, ids, queries);
    };
    record_map(input, [&] {
      Mask mask = call.key_lengths ? Mask::lengths(call.key_lengths) : Mask::none();
      if (call.bias) mask = mask.with(call.bias);
      return joined(lazy_output(identity_values(heads.k), kept, queries, causal),
                    softmax_map(q, heads.k, scale_, mask, 0));
    });
    return joined(lazy_output(heads.v, kept, queries, causal), attention(q, heads.k, heads.v, call));
  }

  /// The queries that attend to all keys: i32 [B, H, n], -1 for none.
  Tensor selected_queries(const Heads& heads, const AttentionInput& input) const {
    const NoGrad no_grad;
    const Device device = heads.q.device();
    const int64_t queries = heads.q.extent(2), keys = heads.k.extent(2);
    const bool ignores_later_tokens = input.mask.is_causal() && options_.strict;
    Tensor samples = samples_;
    if (samples && (samples.rank() != 2 || samples.extent(0) != queries || samples.extent(1) < 1)) {
      fail("attention 'informer': samples are ", samples.shape(), " for ", queries,
           " queries. They must be [N, U], a row of key numbers for each query.");
    }
    if (!samples) {
      // A row of samples does not depend on the number of rows, nor on padding when max_length is known.
      const int64_t max_length = std::max({config().max_length, queries, keys});
      Rng fixed(static_cast<uint64_t>(config().layer) + 1, device);
      const bool is_redrawn = options_.resample && input.context.training();
      samples = empty_like(heads.q, Shape{queries, kernel::logarithmic(options_.factor, max_length)});
      fill_uniform(samples, 0, 1, is_redrawn ? *input.context.rng : fixed);
    }
    const Tensor measure = empty_like(heads.q, Shape{heads.q.extent(0), heads.q.extent(1), queries});
    const Tensor& lengths = input.mask.key_lengths();
    launch<kernel::SparsityMeasure>(device, rows(heads.q), rows(heads.k),
                                    contiguous(cast(samples, measure.dtype())), lengths,
                                    kernel::Sampling{.factor = samples_ ? 0 : options_.factor,
                                                     .fractions = !samples_,
                                                     .causal = ignores_later_tokens,
                                                     .same_tokens = !config().cross},
                                    measure);
    const int64_t count = kernel::logarithmic(options_.factor, queries);
    const Tensor ids(Shape{measure.extent(0), measure.extent(1),
                           ignores_later_tokens ? std::min(queries, 2 * count) : count},
                     DType::i32, device);
    const Tensor query_lengths = config().cross ? Tensor() : lengths;
    if (ignores_later_tokens)
      launch<kernel::CausalTopQueries>(device, measure, query_lengths, options_.factor, ids);
    else
      launch<kernel::TopQueries>(device, measure, query_lengths, options_.factor, ids);
    return ids;
  }

  /// x without gradient, with contiguous rows.
  static Tensor rows(const Tensor& x) { return x.strides()[-1] == 1 ? x.detach() : contiguous(x.detach()); }

  /// The output of lazy queries [B, H, N, dv]: the mean of the values or, when causal, their sum (or mean) so
  /// far.
  Tensor lazy_output(const Tensor& values, const Tensor& kept, int64_t queries, bool causal) const {
    const Tensor v = kept ? values * kept : values;
    const Tensor ones = kept ? kept : Tensor::full(Shape{1, 1, v.extent(2), 1}, 1, v.dtype(), v.device());
    if (!causal) {
      const Shape shape{v.extent(0), v.extent(1), queries, v.extent(3)};
      return expand(sum(v, 2) / maximum(sum(ones, 2), 1), shape);
    }
    const Tensor sum_so_far = cumulative_sum(v, 2);
    return options_.lazy == Lazy::mean ? sum_so_far / maximum(cumulative_sum(ones, 2), 1) : sum_so_far;
  }

  InformerOptions options_;
  double scale_;
  Tensor samples_;
};

}  // namespace

Variant variant::informer() {
  return describe<InformerAttention, InformerOptions>(
      {.name = "informer",
       .paper = "Zhou et al. 2021",
       .summary = "Only queries with peaked sampled scores attend to all keys; the others get the mean of "
                  "the values.",
       .time = {.length = 1.1, .width = 1},       // N log N
       .memory = {.length = 1.05, .width = 0.9},  // the causal mask of selected queries does not depend on d
       .causal = true,
       .cross = true,
       .last_row = false,
       .map = MapKind::signed_,
       .min_cost_length = 1024});
}

}  // namespace heed
