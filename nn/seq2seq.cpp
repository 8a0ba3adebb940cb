// Recurrent encoder-decoders with attention, or with a fixed context.
#include "heed/nn/seq2seq.h"

#include <iterator>
#include <utility>

namespace heed {

bool has_attention(Wiring wiring) { return wiring == Wiring::bahdanau || wiring == Wiring::luong; }

const char* to_string(Wiring wiring) {
  constexpr const char* names[] = {"bahdanau", "luong", "sutskever", "cho"};
  static_assert(std::size(names) == static_cast<size_t>(Wiring::cho) + 1);
  return names[static_cast<size_t>(wiring)];
}

void Seq2SeqOptions::fields(Fields& f) {
  f("cell", Choice(cell, {"lstm", "gru"}), "recurrent cell of a seq2seq model");
  f("bidirectional", bidirectional,
    "seq2seq: the encoder is bidirectional, each direction with half the width");
  f("wiring", Choice(wiring, {"bahdanau", "luong", "sutskever", "cho"}),
    "seq2seq models: the context goes into the decoder's cell, or joins its state after it; without "
    "attention: the encoder's last state only starts the decoder, or is the context of every step");
  f("input_feeding", input_feeding, "wiring = luong: feed each step's output into the next step");
}

void RecurrentDecoder::State::fields(Fields& f) {
  for (size_t layer = 0; layer < states.size(); ++layer)
    f(("state." + std::to_string(layer)).c_str(), states[layer]);
  f("fed", fed);
}

namespace {

std::unique_ptr<Attention> make_cross(const TransformerConfig& config, const AttentionFactory& cross,
                                      Rng& rng) {
  AttentionConfig attention = config.check().attention_config();
  attention.cross = true;
  return cross(attention, rng);
}

/// True when a step needs the state or the output of the step before as an input of its attention or cell.
bool is_sequential(const Seq2SeqOptions& options) {
  return options.wiring == Wiring::bahdanau || (options.wiring == Wiring::luong && options.input_feeding);
}

/// True when the first cell has an input besides the token.
bool has_fed_input(const Seq2SeqOptions& options) {
  return is_sequential(options) || options.wiring == Wiring::cho;
}

}  // namespace

/// One call of the decoder: its state, its attention and the maps to record.
class RecurrentDecoder::Run {
 public:
  Run(const RecurrentDecoder& decoder, State& state, AttentionCache* cache, const Tensor& encoded,
      const Mask& source, const ForwardContext& context)
      : decoder_(decoder),
        state_(state),
        cache_(cache),
        encoded_(encoded),
        keys_(encoded),
        source_(source),
        context_(context) {
    for (const Tensor& layer : state.states) states.push_back(transpose(layer, 0, 1));
  }
  /// The context vectors [B, T, width] of queries [B, T, width].
  Tensor attend(const Tensor& queries) {
    ForwardContext without_recorder = context_;
    without_recorder.recorder = nullptr;
    const Tensor keys = std::exchange(keys_, Tensor());
    if (context_.recorder != nullptr) queries_.push_back(queries.detach());
    return decoder_.cross->forward(
        {.queries = queries, .keys = keys, .mask = source_, .cache = cache_, .context = without_recorder});
  }
  /// Records one map of all queries, since attention with a cache of sums has no map of a single step.
  void record_map() const {
    if (context_.recorder == nullptr || !decoder_.cross) return;
    const NoGrad no_grad;
    decoder_.cross->forward({.queries = concat(queries_, 1),
                             .keys = encoded_.detach(),
                             .mask = source_,
                             .context = {.recorder = context_.recorder}});
  }
  /// Stores the states of all layers in the decoder's State.
  void store_states() {
    for (size_t i = 0; i < states.size(); ++i) state_.states[i] = transpose(states[i], 0, 1);
  }
  Tensor& fed() { return state_.fed; }
  Rng* rng() const { return context_.rng; }

  std::vector<Tensor> states;  // [parts, B, width] per layer

 private:
  const RecurrentDecoder& decoder_;
  State& state_;
  AttentionCache* cache_;
  const Tensor& encoded_;
  Tensor keys_;  // encoded_ in the first call of attend(), empty afterwards: it is cached
  const Mask& source_;
  const ForwardContext& context_;
  std::vector<Tensor> queries_;
};

RecurrentDecoder::RecurrentDecoder(const TransformerConfig& config, const Seq2SeqOptions& options,
                                   const AttentionFactory& factory, Rng& rng)
    : cross(has_attention(options.wiring) ? make_cross(config, factory, rng) : nullptr),
      options_(options),
      dropout_(config.dropout) {
  if (cross && !cross->new_cache()) {
    fail(
        "seq2seq: a recurrent decoder needs a cross-attention that decodes step by step, and this one "
        "cannot. "
        "`heed list attention` shows which can.");
  }
  const int64_t width = config.d_model;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    cells.push_back(std::make_unique<RecurrentCell>(options.cell, width, width, rng));
  bridge = Linear(width, config.layers * cells[0]->parts() * width, rng, {.init = config.init});
  if (has_fed_input(options))
    fed = Linear(width, cells[0]->gates() * width, rng, {.bias = false, .init = config.init});
  if (options.wiring == Wiring::sutskever) return;
  const bool luong = options.wiring == Wiring::luong;
  readout = Linear((luong ? 2 : 3) * width, width, rng, {.bias = !luong, .init = config.init});
}

std::unique_ptr<RecurrentDecoder::State> RecurrentDecoder::start(const Tensor& last) const {
  const ModuleScope within(this);
  const int64_t batch = last.extent(0), width = last.extent(1), parts = cells[0]->parts();
  const Tensor all = reshape(tanh(bridge(last)), Shape{batch, -1, width});  // [B, layers parts, width]
  auto state = std::make_unique<State>();
  for (int64_t layer = 0; layer < static_cast<int64_t>(cells.size()); ++layer)
    state->states.push_back(slice(all, 1, layer * parts, (layer + 1) * parts));
  if (options_.wiring == Wiring::luong && options_.input_feeding)
    state->fed = Tensor::zeros(last.shape(), last.dtype(), last.device());
  if (options_.wiring == Wiring::cho) state->fed = last;
  return state;
}

Tensor RecurrentDecoder::step_by_step(const Tensor& x, Run& run) const {
  const bool bahdanau = options_.wiring == Wiring::bahdanau;
  const int64_t batch = x.extent(0), steps = x.extent(1), width = x.extent(2);
  const Shape row{batch, width}, query{batch, 1, width};
  std::vector<Tensor> contexts, states, outputs;
  for (const Tensor& word : unstack(cells[0]->input(transpose(x, 0, 1)))) {
    if (bahdanau) {
      const Tensor queries = reshape(cells.back()->hidden(run.states.back()), query);
      run.fed() = reshape(run.attend(queries), row);
      contexts.push_back(run.fed());
    }
    Tensor from_input = word + fed(run.fed());
    for (size_t layer = 0; layer < cells.size(); ++layer) {
      Tensor& state = run.states[layer];
      state = cells[layer]->step(from_input, state);
      if (layer + 1 == cells.size()) break;
      from_input = cells[layer + 1]->input(dropout(cells[layer]->hidden(state), dropout_, run.rng()));
    }
    const Tensor h = cells.back()->hidden(run.states.back());
    if (bahdanau) {
      states.push_back(h);
      continue;
    }
    const Tensor attended = reshape(run.attend(reshape(h, query)), row);
    run.fed() = dropout(tanh(readout(concat(std::vector<Tensor>{attended, h}, 1))), dropout_, run.rng());
    outputs.push_back(run.fed());
  }
  const auto joined = [&](const std::vector<Tensor>& list) {
    return transpose(reshape(concat(list, 0), Shape{steps, batch, width}), 0, 1);  // [B, T, width]
  };
  if (!bahdanau) return joined(outputs);
  run.fed() = Tensor();
  const Tensor inputs = concat(std::vector<Tensor>{joined(states), joined(contexts), x}, 2);
  return dropout(tanh(readout(inputs)), dropout_, run.rng());
}

/// The states of the highest layer [B, T, width]; `constant` is added to the gates of the lowest at each
/// step.
Tensor RecurrentDecoder::top_states(const Tensor& x, Run& run, const Tensor& constant) const {
  Tensor y = transpose(x, 0, 1);
  for (size_t layer = 0; layer < cells.size(); ++layer) {
    if (layer > 0) y = dropout_of_steps(y, dropout_, run.rng());
    y = cells[layer]->run(y, run.states[layer], {}, Direction::forward, layer == 0 ? constant : Tensor());
  }
  return contiguous(transpose(y, 0, 1));
}

Tensor RecurrentDecoder::from_fixed_context(const Tensor& x, Run& run) const {
  if (options_.wiring == Wiring::sutskever) return dropout(top_states(x, run, {}), dropout_, run.rng());
  const Tensor& c = run.fed();  // [B, width]
  const Tensor states = top_states(x, run, fed(c));
  const Tensor contexts = expand(reshape(c, Shape{c.extent(0), 1, c.extent(1)}), states.shape());
  const Tensor inputs = concat(std::vector<Tensor>{states, contexts, x}, 2);
  return dropout(tanh(readout(inputs)), dropout_, run.rng());
}

Tensor RecurrentDecoder::all_steps(const Tensor& x, Run& run) const {
  const Tensor states = top_states(x, run, {});
  const Tensor attended = run.attend(states);
  return dropout(tanh(readout(concat(std::vector<Tensor>{attended, states}, 2))), dropout_, run.rng());
}

Tensor RecurrentDecoder::operator()(const Tensor& x, State& state, AttentionCache* cache,
                                    const Tensor& encoded, const Mask& source,
                                    const ForwardContext& context) const {
  const ModuleScope within(this);
  Run run(*this, state, cache, encoded, source, context);
  const Tensor y = !cross                    ? from_fixed_context(x, run)
                   : is_sequential(options_) ? step_by_step(x, run)
                                             : all_steps(x, run);
  run.store_states();
  run.record_map();
  return y;
}

void RecurrentDecoder::fields(Fields& f) {
  f("cells", cells);
  f("cross", cross);
  f("bridge", bridge);
  if (fed.weight) f("context", fed);
  if (readout.weight) f("readout", readout);
}

namespace {

/// `config` without a position encoding, which recurrent networks do not need.
TransformerConfig without_positions(TransformerConfig config) {
  config.position = PositionKind::none;
  return config;
}

}  // namespace

Seq2Seq::Seq2Seq(const TransformerConfig& config, const Seq2SeqOptions& options, int64_t source_vocabulary,
                 int64_t target_vocabulary, const AttentionFactory& cross, Rng& rng)
    : source(source_vocabulary, without_positions(config), rng),
      target(target_vocabulary, without_positions(config), rng),
      encoder(config.d_model, config.d_model,
              {.cell = options.cell,
               .layers = config.layers,
               .bidirectional = options.bidirectional,
               .dropout = config.dropout},
              rng),
      decoder(config, options, cross, rng),
      output(tie_tables(config, source, target, rng)),
      logit_scale_(config.logit_scale) {}

Tensor Seq2Seq::encode(const Tensor& ids, const Tensor& lengths, const ForwardContext& context) const {
  return encoder(source(ids, 0, context.rng), lengths, context.rng);
}

Tensor Seq2Seq::decode(const Tensor& ids, const Tensor& encoded, const Tensor& lengths,
                       const ForwardContext& context) const {
  const auto state = decoder.start(encoder.last(encoded));
  const auto cache = decoder.new_cache();
  return decoder(target(ids, 0, context.rng), *state, cache.get(), encoded, Mask::lengths(lengths), context);
}

Tensor Seq2Seq::logits(const Tensor& hidden) const {
  return output_logits(output, target, hidden, logit_scale_);
}

Tensor Seq2Seq::token_loss(const Tensor& hidden, const Tensor& targets, double smoothing,
                           int32_t ignore) const {
  return output_cross_entropy(output, target, hidden, targets, smoothing, ignore, logit_scale_);
}

Decoding Seq2Seq::start(const Tensor& encoded, const Tensor& lengths) const {
  Decoding state{.cache = {}, .source = Mask::lengths(lengths), .encoded = encoded};
  state.cache.push_back({decoder.start(encoder.last(encoded)), decoder.new_cache()});
  return state;
}

Tensor Seq2Seq::next(const Tensor& ids, Decoding& state) const {
  auto* own =
      state.cache.size() == 1 ? dynamic_cast<RecurrentDecoder::State*>(state.cache[0].self.get()) : nullptr;
  if (own == nullptr) fail("seq2seq: this decoding is another model's. Use the one from new_cache().");
  const Tensor hidden = decoder(target(ids, state.length, nullptr), *own, state.cache[0].cross.get(),
                                state.encoded, state.source, {.editor = state.editor});
  state.encoded = Tensor();
  state.length += ids.extent(1);
  return logits(last_position(hidden));
}

void Seq2Seq::fields(Fields& f) {
  f("source", source);
  f("target", target);
  f("encoder", encoder);
  f("decoder", decoder);
  f.boundary("output", output);
}

}  // namespace heed
