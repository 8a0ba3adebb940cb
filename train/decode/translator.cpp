// Translation and its attention maps.
#include "heed/train/decode/translator.h"

#include <algorithm>

#include "heed/attention/inspect/head_calls.h"
#include "heed/core/counted_work.h"
#include "heed/train/config/config.h"
#include "heed/train/decode/beam_search.h"
#include "heed/train/decode/greedy.h"
#include "heed/train/decode/logit_lens.h"
#include "heed/train/tasks/map_provider.h"
#include "heed/train/tasks/task.h"

namespace heed {

int64_t source_room(const Tokenizer& source, int64_t max_length) {
  return max_length - source.special().around_source();
}

namespace {

/// The tokens of a sentence, cut to the length that the model reads, between its special tokens.
std::vector<int32_t> framed(const Tokenizer& tokenizer, const std::string& sentence, int64_t max_length) {
  std::vector<int32_t> ids = tokenizer.encode(sentence);
  ids.resize(std::min(ids.size(), static_cast<size_t>(source_room(tokenizer, max_length))));
  if (tokenizer.special().starts_source) ids.insert(ids.begin(), tokenizer.start());
  ids.push_back(tokenizer.end());
  return ids;
}

/// Tokens that are never written: padding and start, and unknown unless it is allowed.
std::vector<int32_t> forbidden_tokens(const Tokenizer& target, const DecodeOptions& options) {
  std::vector<int32_t> out{target.pad(), target.start()};
  if (!options.allow_unknown) out.push_back(target.unknown());
  return out;
}

/// Translates by greedy decoding, or by beam search where options.beam_size is above 1. max_lengths: the
/// maximum number of tokens of each output.
std::vector<Hypothesis> decoded(const TranslationModel& model, Decoding start,
                                const std::vector<int64_t>& max_lengths, const Tokenizer& target,
                                const DecodeOptions& options) {
  const std::vector<std::vector<int32_t>> prompts(max_lengths.size(), {target.start()});
  const std::vector<int32_t> forbidden = forbidden_tokens(target, options), stop{target.end()};
  if (options.beam_size == 1)
    return greedy_batch(
        model, prompts,
        {.stop_tokens = stop, .forbidden_tokens = forbidden, .max_new_tokens_of_each = max_lengths},
        std::move(start));
  return beam_search_batch(model, prompts,
                           {.beam_size = options.beam_size,
                            .length_penalty = options.length_penalty,
                            .rules = options.beam_rules,
                            .stop_tokens = stop,
                            .forbidden_tokens = forbidden,
                            .max_new_tokens_of_each = max_lengths},
                           std::move(start));
}

constexpr std::string_view target_mark = " ||| ";  // between a sentence and the target that is given for it

/// A padded batch of source sentences.
struct Source {
  Tensor ids;      // i32 [B, S]
  Tensor lengths;  // i32 [B]
};

/// Pads token sequences to the longest.
Source padded_batch(const std::vector<std::vector<int32_t>>& rows, int32_t pad) {
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, row.size());
  std::vector<int32_t> ids, lengths;
  for (const auto& row : rows) {
    lengths.push_back(static_cast<int32_t>(row.size()));
    ids.insert(ids.end(), row.begin(), row.end());
    ids.insert(ids.end(), widest - row.size(), pad);
  }
  const auto count = static_cast<int64_t>(rows.size());
  return {Tensor::of<int32_t>(ids, Shape{count, static_cast<int64_t>(widest)}),
          Tensor::of<int32_t>(lengths, Shape{count})};
}

/// The tokens as text.
std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> out;
  for (int32_t id : ids) out.push_back(tokenizer.piece(id));
  return out;
}

/// A sentence, and the tokens that the decoder reads and writes for it.
struct Translated {
  std::vector<int32_t> ids;                // tokens of the sentence
  Source source;                           // these tokens as a batch of one sequence
  Tensor states;                           // [1, S, width]: the encoder's output
  std::vector<int32_t> read_ids, written;  // input and output of the decoder: [SOS] a b c, and a b c [EOS]
  Tensor read;                             // i32 [1, T]
  std::string caption;                     // "sentence -> translation"
};

/// Translates greedily, or takes the target after "|||".
Translated translated(TranslationModel& model, const std::string& sentence, const Tokenizer& source,
                      const Tokenizer& target, int64_t max_length, const DecodeOptions& options,
                      const ForwardContext& context) {
  const size_t bar = sentence.find(target_mark);
  Translated out;
  out.ids = framed(source, sentence.substr(0, bar), max_length);
  out.source = padded_batch({out.ids}, source.pad());
  out.states = model.encode(out.source.ids, out.source.lengths, context);
  const int64_t room =
      std::min<int64_t>(static_cast<int64_t>(out.ids.size()) + options.max_extra_tokens, max_length - 1);
  if (bar == std::string::npos) {
    const NoGrad decoding;
    DecodeOptions greedily = options;
    greedily.beam_size = 1;
    out.written =
        decoded(model, model.start(out.states, out.source.lengths), {room}, target, greedily)[0].ids;
  } else {
    out.written = target.encode(sentence.substr(bar + target_mark.size()));
    out.written.resize(std::min(out.written.size(), static_cast<size_t>(max_length - 1)));
  }
  out.caption = sentence.substr(0, bar) + "  \u2192  " + target.decode(out.written);
  if (const int64_t more = tokens_left_out(source, sentence.substr(0, bar), max_length); more > 0)
    out.caption += text(" (of the sentence, the last ", more, more == 1 ? " token is" : " tokens are",
                        " left out: the model reads ", source_room(source, max_length), ")");
  out.read_ids = out.written;
  out.read_ids.insert(out.read_ids.begin(), target.start());
  out.written.push_back(target.end());
  out.read = padded_batch({out.read_ids}, target.pad()).ids;
  return out;
}

}  // namespace

int64_t tokens_left_out(const Tokenizer& source, const std::string& sentence, int64_t max_length) {
  return std::max<int64_t>(
      static_cast<int64_t>(source.encode(sentence).size()) - source_room(source, max_length), 0);
}

void refuse_long(const std::string& sentence, const Tokenizer& source, const Tokenizer& target,
                 int64_t max_length) {
  const size_t bar = sentence.find(target_mark);
  const auto check = [](const char* what, const Tokenizer& tokenizer, const std::string& words,
                        int64_t room) {
    if (const auto count = static_cast<int64_t>(tokenizer.encode(words).size()); count > room)
      fail("the ", what, " has ", count, " tokens, and the model reads ", room, " at most. Shorten it.");
  };
  check("sentence", source, sentence.substr(0, bar), source_room(source, max_length));
  if (bar != std::string::npos)
    check("target", target, sentence.substr(bar + target_mark.size()), max_length - 1);
}

std::vector<std::string> translate_all(const TranslationModel& model,
                                       const std::vector<std::string>& sentences, const Tokenizer& source,
                                       const Tokenizer& target, int64_t max_length,
                                       const DecodeOptions& options, HeadEditor* editor) {
  const NoGrad no_grad;
  constexpr size_t max_batch = 128;
  std::vector<std::vector<int32_t>> encoded;
  for (const std::string& sentence : sentences) encoded.push_back(framed(source, sentence, max_length));
  std::vector<size_t> order;  // by length; sentences without words are left out, and their output is empty
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (static_cast<int64_t>(encoded[i].size()) > source.special().around_source()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return encoded[a].size() < encoded[b].size(); });
  std::vector<std::string> out(sentences.size());
  size_t tokens = 0;
  for (const size_t i : order) tokens += encoded[i].size();
  CountedWork work(static_cast<double>(tokens), "translations");
  for (size_t begin = 0; begin < order.size(); begin += max_batch) {
    const size_t end = std::min(begin + max_batch, order.size());
    std::vector<std::vector<int32_t>> rows;
    std::vector<int64_t> max_lengths;
    for (size_t i = begin; i < end; ++i) {
      rows.push_back(encoded[order[i]]);
      max_lengths.push_back(std::min<int64_t>(
          static_cast<int64_t>(rows.back().size()) + options.max_extra_tokens, max_length - 1));
    }
    const Source batch = padded_batch(rows, source.pad());
    const Tensor states = model.encode(batch.ids, batch.lengths, {.editor = editor});
    Decoding start = model.start(states, batch.lengths);
    start.editor = editor;
    const std::vector<Hypothesis> found = decoded(model, std::move(start), max_lengths, target, options);
    for (size_t i = begin; i < end; ++i) {
      out[order[i]] = target.decode(found[i - begin].ids);
      work.add(static_cast<double>(rows[i - begin].size()));
    }
  }
  return out;
}

std::vector<MapView> translation_maps(TranslationModel& model, const std::string& sentence,
                                      const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                                      const DecodeOptions& options, std::string& caption,
                                      const MapParts& parts) {
  MapRecorder recorder = recorder_for(parts);
  std::optional<NoGrad> no_grad;
  turn_gradients_off(no_grad, parts);
  const Translated one =
      translated(model, sentence, source, target, max_length, options, {.recorder = &recorder});
  const Tensor hidden = model.decode(one.read, one.states, one.source.lengths, {.recorder = &recorder});
  if (parts.attribution)
    explain_choice(reshape(model.logits(hidden), Shape{static_cast<int64_t>(one.written.size()), -1}), parts,
                   one.written);
  caption = one.caption;
  std::vector<MapView> views;
  const std::vector<std::string> in = pieces(source, one.ids), out = pieces(target, one.written),
                                 fed = pieces(target, one.read_ids);
  for (size_t i = 0; i < recorder.maps.size(); ++i) {
    const std::string name = name_of(model, recorder.maps[i].module);
    const bool is_encoder = name.starts_with("encoder"), is_cross = name.find(".cross") != std::string::npos;
    views.push_back(map_view(model, recorder, i,
                             {.kind = is_encoder ? "encoder self"
                                      : is_cross ? "cross"
                                                 : "decoder self",
                              .layer = block_of(name),
                              .query_tokens = is_encoder ? in
                                              : is_cross ? out
                                                         : fed,
                              .key_tokens = is_encoder || is_cross ? in : fed}));
  }
  return views;
}

LensView translation_lens(TranslationModel& model, const std::string& sentence, const Tokenizer& source,
                          const Tokenizer& target, int64_t max_length, const DecodeOptions& options) {
  const auto* layers = dynamic_cast<const EncoderDecoder*>(&model);
  if (layers == nullptr)
    fail(
        "inspect: a recurrent translator (model.kind = seq2seq) has no logit lens: its layers have no common "
        "output layer. Transformers have one.");
  const NoGrad no_grad;
  const Translated one = translated(model, sentence, source, target, max_length, options, {});
  LensView lens = lens_view(layers->layer_logits(one.read, one.states, one.source.lengths),
                            [&](int32_t id) { return target.piece(id); });
  lens.caption = one.caption;
  lens.tokens = pieces(target, one.read_ids);
  lens.next = pieces(target, one.written);
  check(lens);
  return lens;
}

}  // namespace heed
