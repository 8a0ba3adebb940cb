// Recurrent encoder-decoders.
#include "nn/seq2seq.h"

#include <utility>

namespace heed {

void Seq2SeqOptions::fields(Fields& f) {
  f("cell", Choice(cell, {"lstm", "gru"}), "of a seq2seq model");
  f("bidirectional", bidirectional, "a seq2seq model's encoder reads both ways, each with half the width");
  f("wiring", Choice(wiring, {"bahdanau", "luong"}),
    "of a seq2seq model: the context goes into the decoder's cell, or joins its state after it");
  f("input_feeding", input_feeding, "wiring = luong: the output of a step is an input of the next");
}

void RecurrentDecoder::State::fields(Fields& f) {
  for (size_t layer = 0; layer < states.size(); ++layer)
    f(("state." + std::to_string(layer)).c_str(), states[layer]);
  f("fed", fed);
}

namespace {

std::unique_ptr<Attention> make_cross(const TransformerConfig& config, const AttentionFactory& cross,
                                      Rng& rng) {
  return cross({.width = config.check().width,
                .heads = config.heads,
                .key_heads = config.key_heads,
                .head_width = config.head_width,
                .cross = true,
                .max_length = config.max_length,
                .dropout = config.dropout_of_weights(),
                .input_bias = config.attention_bias,
                .output_bias = config.attention_bias,
                .init = config.init,
                .modifiers = config.modifiers},
               rng);
}

bool feeds(const Seq2SeqOptions& options) {
  return options.wiring == Wiring::bahdanau || options.input_feeding;
}

}  // namespace

/// What the decoder goes through a sentence with.
class RecurrentDecoder::Walk {
 public:
  Walk(const RecurrentDecoder& decoder, State& state, Memory& memory, const Tensor& encoded,
       const Mask& source, const Pass& pass)
      : decoder_(decoder),
        state_(state),
        memory_(memory),
        encoded_(encoded),
        given_(encoded),
        source_(source),
        pass_(pass) {
    for (const Tensor& kept : state.states) states.push_back(transpose(kept, 0, 1));
  }
  /// The contexts of queries [B, T, width].
  Tensor attend(const Tensor& queries) {
    Pass own = pass_;
    own.probe = nullptr;
    const Tensor keys = std::exchange(given_, Tensor());
    if (pass_.probe != nullptr) asked_.push_back(queries.detach());
    return decoder_.cross->forward(
        {.queries = queries, .keys = keys, .mask = source_, .memory = &memory_, .pass = own});
  }
  /// One map of all that was asked: a step alone may have none, where memories are sums.
  void show() const {
    if (pass_.probe == nullptr) return;
    const NoTape no_tape;
    decoder_.cross->forward({.queries = concat(asked_, 1),
                             .keys = encoded_.detach(),
                             .mask = source_,
                             .pass = {.probe = pass_.probe}});
  }
  void keep() {
    for (size_t i = 0; i < states.size(); ++i) state_.states[i] = transpose(states[i], 0, 1);
  }
  Tensor& fed() { return state_.fed; }
  Rng* noise() const { return pass_.noise; }

  std::vector<Tensor> states;  // [parts, B, width] a layer

 private:
  const RecurrentDecoder& decoder_;
  State& state_;
  Memory& memory_;
  const Tensor& encoded_;
  Tensor given_;  // encoded_ until the memory has it
  const Mask& source_;
  const Pass& pass_;
  std::vector<Tensor> asked_;
};

RecurrentDecoder::RecurrentDecoder(const TransformerConfig& config, const Seq2SeqOptions& options,
                                   const AttentionFactory& factory, Rng& rng)
    : cross(make_cross(config, factory, rng)), options_(options), dropout_(config.dropout) {
  if (!cross->start()) {
    fail(
        "seq2seq: this cross-attention cannot go step by step, as a recurrent decoder asks it to. `heed list "
        "attention` says which can.");
  }
  const int64_t width = config.width;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    cells.push_back(std::make_unique<RecurrentCell>(options.cell, width, width, rng));
  bridge = Linear(width, config.layers * cells[0]->parts() * width, rng, {.init = config.init});
  if (feeds(options))
    context = Linear(width, cells[0]->gates() * width, rng, {.bias = false, .init = config.init});
  const bool bahdanau = options.wiring == Wiring::bahdanau;
  readout = Linear((bahdanau ? 3 : 2) * width, width, rng, {.bias = bahdanau, .init = config.init});
}

std::unique_ptr<RecurrentDecoder::State> RecurrentDecoder::start(const Tensor& last) const {
  const Within within(this);
  const int64_t batch = last.extent(0), width = last.extent(1), parts = cells[0]->parts();
  const Tensor all = reshape(tanh(bridge(last)), Shape{batch, -1, width});  // [B, layers parts, width]
  auto state = std::make_unique<State>();
  for (int64_t layer = 0; layer < static_cast<int64_t>(cells.size()); ++layer)
    state->states.push_back(slice(all, 1, layer * parts, (layer + 1) * parts));
  if (options_.wiring == Wiring::luong && options_.input_feeding)
    state->fed = Tensor::zeros(last.shape(), last.dtype(), last.device());
  return state;
}

Tensor RecurrentDecoder::in_steps(const Tensor& x, Walk& walk) const {
  const bool bahdanau = options_.wiring == Wiring::bahdanau;
  const int64_t batch = x.extent(0), steps = x.extent(1), width = x.extent(2);
  const Shape row{batch, width}, query{batch, 1, width};
  std::vector<Tensor> contexts, states, outputs;
  for (const Tensor& word : unstack(cells[0]->input(transpose(x, 0, 1)))) {
    if (bahdanau) {
      const Tensor asking = reshape(cells.back()->hidden(walk.states.back()), query);
      walk.fed() = reshape(walk.attend(asking), row);
      contexts.push_back(walk.fed());
    }
    Tensor from_input = word + context(walk.fed());
    for (size_t layer = 0; layer < cells.size(); ++layer) {
      Tensor& state = walk.states[layer];
      state = cells[layer]->step(from_input, state);
      if (layer + 1 == cells.size()) break;
      from_input = cells[layer + 1]->input(dropout(cells[layer]->hidden(state), dropout_, walk.noise()));
    }
    const Tensor h = cells.back()->hidden(walk.states.back());
    if (bahdanau) {
      states.push_back(h);
      continue;
    }
    const Tensor found = reshape(walk.attend(reshape(h, query)), row);
    walk.fed() = dropout(tanh(readout(concat(std::vector<Tensor>{found, h}, 1))), dropout_, walk.noise());
    outputs.push_back(walk.fed());
  }
  const auto joined = [&](const std::vector<Tensor>& list) {
    return transpose(reshape(concat(list, 0), Shape{steps, batch, width}), 0, 1);  // [B, T, width]
  };
  if (!bahdanau) return joined(outputs);
  walk.fed() = Tensor();
  const Tensor seen = concat(std::vector<Tensor>{joined(states), joined(contexts), x}, 2);
  return dropout(tanh(readout(seen)), dropout_, walk.noise());
}

Tensor RecurrentDecoder::at_once(const Tensor& x, Walk& walk) const {
  Tensor y = transpose(x, 0, 1);
  for (size_t layer = 0; layer < cells.size(); ++layer) {
    if (layer > 0) y = dropout_of_steps(y, dropout_, walk.noise());
    y = cells[layer]->sweep(y, walk.states[layer], {}, Direction::forward);
  }
  const Tensor states = contiguous(transpose(y, 0, 1));
  const Tensor found = walk.attend(states);
  return dropout(tanh(readout(concat(std::vector<Tensor>{found, states}, 2))), dropout_, walk.noise());
}

Tensor RecurrentDecoder::operator()(const Tensor& x, State& state, Memory& memory, const Tensor& encoded,
                                    const Mask& source, const Pass& pass) const {
  const Within within(this);
  Walk walk(*this, state, memory, encoded, source, pass);
  const Tensor y = feeds(options_) ? in_steps(x, walk) : at_once(x, walk);
  walk.keep();
  walk.show();
  return y;
}

void RecurrentDecoder::fields(Fields& f) {
  f("cells", cells);
  f("cross", cross);
  f("bridge", bridge);
  if (context.weight) f("context", context);
  f("readout", readout);
}

namespace {

/// Recurrent networks tell positions apart by themselves.
TransformerConfig without_positions(TransformerConfig config) {
  config.position = PositionKind::none;
  return config;
}

}  // namespace

Seq2Seq::Seq2Seq(const TransformerConfig& config, const Seq2SeqOptions& options, int64_t source_vocabulary,
                 int64_t target_vocabulary, const AttentionFactory& cross, Rng& rng)
    : source(source_vocabulary, without_positions(config), rng),
      target(target_vocabulary, without_positions(config), rng),
      encoder(config.width, config.width,
              {.cell = options.cell,
               .layers = config.layers,
               .bidirectional = options.bidirectional,
               .dropout = config.dropout},
              rng),
      decoder(config, options, cross, rng),
      output(tie_tables(config, source, target, rng)) {}

Tensor Seq2Seq::encode(const Tensor& ids, const Tensor& lengths, const Pass& pass) const {
  return encoder(source(ids, 0, pass.noise), lengths, pass.noise);
}

Tensor Seq2Seq::decode(const Tensor& ids, const Tensor& encoded, const Tensor& lengths,
                       const Pass& pass) const {
  const auto state = decoder.start(encoder.last(encoded));
  const auto memory = decoder.cross->start();
  return decoder(target(ids, 0, pass.noise), *state, *memory, encoded, Mask::lengths(lengths), pass);
}

Tensor Seq2Seq::logits(const Tensor& hidden) const {
  return output ? (*output)(hidden) : linear(hidden, target.tokens.weight, {});
}

Decoding Seq2Seq::start(const Tensor& encoded, const Tensor& lengths) const {
  Decoding state{.memory = {}, .source = Mask::lengths(lengths), .encoded = encoded};
  state.memory.push_back({decoder.start(encoder.last(encoded)), decoder.cross->start()});
  return state;
}

Tensor Seq2Seq::next(const Tensor& ids, Decoding& state) const {
  auto* own =
      state.memory.size() == 1 ? dynamic_cast<RecurrentDecoder::State*>(state.memory[0].self.get()) : nullptr;
  if (own == nullptr) fail("seq2seq: this decoding is another model's. Use the one from start().");
  const Tensor hidden = decoder(target(ids, state.length, nullptr), *own, *state.memory[0].cross,
                                state.encoded, state.source, {});
  state.encoded = Tensor();
  state.length += ids.extent(1);
  return logits(reshape(slice(hidden, 1, ids.extent(1) - 1, ids.extent(1)), Shape{ids.extent(0), -1}));
}

void Seq2Seq::fields(Fields& f) {
  f("source", source);
  f("target", target);
  f("encoder", encoder);
  f("decoder", decoder);
  f("output", output);
}

}  // namespace heed
