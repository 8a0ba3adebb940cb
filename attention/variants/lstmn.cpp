// LSTMN: an LSTM that attends to all its earlier states. Cheng et al. 2016, "Long short-term memory-networks
// for machine reading", arXiv 1601.06733.
//
//   a_i = softmax over i < t of u . tanh(A h_i + C x_t + D h~_{t-1} + b)
//   (h~_t, c~_t) = sum a_i (h_i, c_i);   gates from W [x_t; h~_t];   c_t = f c~_t + i g;   h_t = o tanh(c_t)
//
// The output is h_t. Each head has its own scores and reads its share of the columns of h and c. Steps run
// one after another, so time also grows with the number of steps; scores are recomputed in the backward pass.
// The cache holds all h and c. The authors' program leaves D out (use_prev_summary = false).
//
// Parameters: from_slot.weight [H hidden, width] A, from_input.weight C and .bias b, from_summary.weight D,
// units [H, hidden] u, cell.input [4 width, width] and cell.inner [4 width, width] W: gates i, f, g, o
#include <cmath>

#include "heed/attention/base/call_checks.h"
#include "heed/attention/base/grouped_query.h"
#include "heed/attention/variant.h"
#include "heed/autograd/recompute.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/nn/recurrent.h"

namespace heed {
namespace {

struct LstmnOptions {
  int64_t hidden = 0, slots = 0;
  bool bias = false, use_prev_summary = true;
  void fields(Fields& f) {
    f("hidden", hidden, {0, max_width}, "units that score a slot; 0: the width of a head");
    f("slots", slots, {0, max_distance}, "number of latest states that are attended to; 0: all");
    f("bias", bias, "b in the hidden layer");
    f("use_prev_summary", use_prev_summary, "the hidden layer has the previous summary h~ as an input: D");
  }
};

/// Rows [B, n, w] that grow by one per step without copying earlier rows, and pass on gradients. Existing
/// rows never change, so tensors recorded for the backward pass stay valid.
class GrowingRows {
 public:
  /// Reserves space for `count` more rows of w numbers, in the dtype and on the device of `like`.
  void reserve(int64_t batch, int64_t w, int64_t count, const Tensor& like) {
    const int64_t n = rows ? rows.extent(1) : 0;
    if (rows && rows.storage() == buffer_.storage() && buffer_.extent(1) >= n + count) return;
    // When rows are reserved one by one, the capacity doubles.
    const int64_t capacity = count == 1 ? std::max<int64_t>(16, 2 * n) : n + count;
    buffer_ = Tensor::zeros(Shape{batch, capacity, w}, like.dtype(), like.device());
    const Tensor copied = view::slice(buffer_, 1, 0, n);
    if (n > 0) launch<kernel::Copy>(buffer_.device(), rows.detach(), copied);
    rows =
        n > 0 ? record("rows", copied, {&rows}, [](const Tensor& dy) -> Gradients { return {dy}; }) : copied;
  }
  /// Appends row [B, 1, w], for which space must be reserved.
  void add(const Tensor& row) {
    const int64_t n = rows.extent(1);
    launch<kernel::Copy>(buffer_.device(), row.detach(), view::slice(buffer_, 1, n, n + 1));
    rows =
        record("rows", view::slice(buffer_, 1, 0, n + 1), {&rows, &row}, [n](const Tensor& dy) -> Gradients {
          return {view::slice(dy, 1, 0, n), view::slice(dy, 1, n, n + 1)};
        });
  }

  Tensor rows;  ///< [B, n, w]; may be replaced, as by beam search

 private:
  Tensor buffer_;
};

/// Joins the weights of steps into one map [B, H, steps, keys]. weights[i], [B, H, 1, k], are those of the k
/// slots right before step i; the last step has `keys` - 1 slots before it.
Tensor map_of_steps(const std::vector<Tensor>& weights, int64_t keys) {
  const auto steps = static_cast<int64_t>(weights.size());
  const Tensor& last = weights.back();
  const Tensor map =
      Tensor::zeros(Shape{last.extent(0), last.extent(1), steps, keys}, last.dtype(), last.device());
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor& row = weights[static_cast<size_t>(i)];
    const int64_t end = keys - steps + i, first = end - row.extent(3);  // columns of the slots before step i
    launch<kernel::Copy>(map.device(), row, view::slice(view::slice(map, 2, i, i + 1), 3, first, end));
  }
  return map;
}

struct LstmnCache final : AttentionCache {
  GrowingRows states;         // h and c of all steps, [B, t, H 2 d]: h, then c of each head
  GrowingRows hidden_states;  // A h_i of all steps, [B, t, H hidden]
  Tensor summary;             // h~ of the last step, [B, width]
  void fields(Fields& f) override {
    f("slots", states.rows);
    f("scored", hidden_states.rows);
    f("summary", summary);
  }
};

class LstmnAttention final : public Attention {
 public:
  LstmnAttention(const AttentionConfig& config, const LstmnOptions& o, Rng& rng)
      : config_(config), options_(o) {
    if (config.head_dim != 0 && config.inner_width() != config.d_model)
      fail("attention 'lstmn': its heads are shares of the state, so they are width / heads wide, not ",
           config.head_dim, ". Leave head_dim 0, or use softmax.");
    query_width(config);  // fails when the heads do not divide the width
    const int64_t width = config.d_model, hidden = o.hidden > 0 ? o.hidden : width / config.heads;
    const auto layer = [&](bool bias) {
      return Linear(width, config.heads * hidden, rng, {.bias = bias, .init = config.init});
    };
    from_slot_ = layer(false);
    from_input_ = layer(o.bias);
    if (o.use_prev_summary) from_summary_ = layer(false);
    units_ =
        uniform_parameter(Shape{config.heads, hidden}, std::sqrt(6.0 / static_cast<double>(hidden + 1)), rng);
    cell_ = std::make_unique<RecurrentCell>(CellKind::lstm, width, width, rng);
  }

  Tensor forward(const AttentionInput& given) override {
    const ModuleScope within(this);
    check_call(given, config_);
    const AttentionInput input = with_finite_padding(given, config_.cross);
    check(input);
    LstmnCache own_cache;
    LstmnCache* const cached = cache_of<LstmnCache>(input);
    LstmnCache* const cache = cached != nullptr ? cached : &own_cache;
    const Tensor x = transpose(input.queries, 0, 1);  // [T, B, width]
    const int64_t steps = x.extent(0), batch = x.extent(1), width = config_.d_model;
    cache->states.reserve(batch, 2 * width, steps, x);
    cache->hidden_states.reserve(batch, units_.size(), steps, x);
    // The layer runs even without rows, so that its gradient after one step is zero instead of missing.
    if (cache->length == 0)
      cache->hidden_states.rows = from_slot_(Tensor::zeros(Shape{batch, 0, width}, x.dtype(), x.device()));
    if (!cache->summary) cache->summary = Tensor::zeros(Shape{batch, width}, x.dtype(), x.device());
    // The parts of gates and of hidden layers that depend on the inputs alone: a tensor for each step.
    const std::vector<Tensor> gate_inputs = unstack(cell_->input(x)), query_inputs = unstack(from_input_(x));
    std::vector<Tensor> outputs, maps;
    for (size_t i = 0; i < gate_inputs.size(); ++i) {
      const int64_t t = cache->length;
      const Tensor query =
          options_.use_prev_summary ? query_inputs[i] + from_summary_(cache->summary) : query_inputs[i];
      const Tensor state = read_state(query, *cache, input, maps);  // [2, B, width], h~ and c~
      cache->summary = cell_->hidden(state);
      const Tensor next = cell_->step(gate_inputs[i], state, input.mask.key_lengths(), t);
      const Tensor h = cell_->hidden(next);
      outputs.push_back(h);
      cache->hidden_states.add(reshape(from_slot_(h), Shape{batch, 1, -1}));
      const Tensor by_head = reshape(next, Shape{2, batch, config_.heads, -1});
      cache->states.add(reshape(permute(by_head, {1, 2, 0, 3}), Shape{batch, 1, 2 * width}));
      ++cache->length;
      ++cache->queries;
    }
    if (input.context.recorder != nullptr)
      input.context.recorder->record(*this, map_of_steps(maps, cache->length));
    return transpose(reshape(concat(outputs, 0), Shape{steps, batch, width}), 0, 1);
  }

  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<LstmnCache>(); }
  void fields(Fields& f) override {
    f("from_slot", from_slot_);
    f("from_input", from_input_);
    if (options_.use_prev_summary) f("from_summary", from_summary_);
    f("units", units_);
    f("cell", cell_);
  }

 private:
  static void check(const AttentionInput& input) {
    if (!input.keys || input.keys.extent(1) != input.queries.extent(1))
      fail("attention 'lstmn': a step reads its own input, so keys are the queries. Give both.");
    if (input.mask.bias())
      fail("attention 'lstmn': slots are states, not pairs of positions, so it takes no bias.");
  }

  /// h~ and c~ [2, B, width] of a step: the weighted sums of earlier states. query [B, H hidden]:
  /// C x_t + D h~_{t-1} + b.
  Tensor read_state(const Tensor& query, const LstmnCache& cache, const AttentionInput& input,
                    std::vector<Tensor>& maps) const {
    const int64_t t = cache.length, first = options_.slots > 0 ? std::max<int64_t>(0, t - options_.slots) : 0;
    const int64_t batch = query.extent(0), heads = config_.heads;
    Tensor mask;
    if (input.mask.key_lengths() && t > first) {
      mask = Mask::lengths(input.mask.key_lengths()).dense(empty_like(query, Shape{batch, heads, 1, t}), t);
      mask = slice(mask, 3, first, t);
    }
    const auto split = [=](const Tensor& rows) {  // [B, n, H w] -> [B, H, n, w]
      const Tensor earlier = slice(rows, 1, first, t);
      return transpose(reshape(earlier, Shape{batch, t - first, heads, rows.extent(2) / heads}), 1, 2);
    };
    const auto weigh = [=](const Tensor& queries, const Tensor& hidden, const Tensor& units) {
      Tensor scores = additive_scores(reshape(queries, Shape{batch, heads, 1, -1}), split(hidden), units);
      return softmax(mask ? scores + mask : scores);
    };
    const auto read = [=](const Tensor& weights, const Tensor& slots) {
      const Tensor sums = matmul(weights, split(slots));  // [B, H, 1, 2 d]
      const Tensor parts = reshape(sums, Shape{batch, heads, 2, -1});
      return reshape(permute(parts, {2, 0, 1, 3}), Shape{2, batch, -1});
    };
    const bool drops = config_.dropout > 0 && input.context.training();
    if (input.context.recorder == nullptr && !drops) {
      const std::vector<Tensor> inputs{query, cache.hidden_states.rows, units_, cache.states.rows};
      return checkpoint([=](std::span<const Tensor> in) { return read(weigh(in[0], in[1], in[2]), in[3]); },
                        inputs);
    }
    const Tensor weights = weigh(query, cache.hidden_states.rows, units_);
    if (input.context.recorder != nullptr) maps.push_back(weights.detach());
    return read(dropout(weights, config_.dropout, input.context.rng), cache.states.rows);
  }

  AttentionConfig config_;
  LstmnOptions options_;
  Linear from_slot_, from_input_, from_summary_;
  Tensor units_;  // [H, hidden]
  std::unique_ptr<RecurrentCell> cell_;
};

}  // namespace

Variant variant::lstmn() {
  return describe<LstmnAttention, LstmnOptions>(
      {.name = "lstmn",
       .paper = "Cheng et al. 2016",
       .summary = "An LSTM that reads a weighted sum of all its earlier states instead of the last.",
       .time = {.length = 2, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .bidirectional = false,
       .steps = true,
       .map = MapKind::inside});
}

}  // namespace heed
