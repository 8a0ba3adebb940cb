// Translation and its attention maps.
#include "heed/train/decode/translator.h"

#include <algorithm>

#include "heed/train/decode/beam_search.h"
#include "heed/train/decode/greedy.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

std::vector<int32_t> framed(const Tokenizer& tokenizer, const std::string& sentence, int64_t max_length) {
  std::vector<int32_t> ids = tokenizer.encode(sentence);
  ids.resize(std::min(ids.size(), static_cast<size_t>(max_length - 2)));
  ids.insert(ids.begin(), tokenizer.start());
  ids.push_back(tokenizer.end());
  return ids;
}

DecodeIds decode_ids(const Tokenizer& target, const DecodeOptions& options) {
  DecodeIds ids{.start = target.start(), .end = target.end(), .forbidden = {target.pad(), target.start()}};
  if (!options.allow_unknown) ids.forbidden.push_back(target.unknown());
  return ids;
}

struct Source {
  Tensor ids, lengths;  // [B, S], [B]
};

Source rectangle(const std::vector<std::vector<int32_t>>& rows, int32_t pad) {
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

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> out;
  for (int32_t id : ids) out.push_back(tokenizer.piece(id));
  return out;
}

}  // namespace

std::vector<std::string> translate_all(const TranslationModel& model,
                                       const std::vector<std::string>& sentences, const Tokenizer& source,
                                       const Tokenizer& target, int64_t max_length,
                                       const DecodeOptions& options, HeadEditor* editor) {
  const NoGrad no_tape;
  constexpr size_t max_batch = 128;
  std::vector<std::vector<int32_t>> encoded;
  for (const std::string& sentence : sentences) encoded.push_back(framed(source, sentence, max_length));
  std::vector<size_t> order;  // a sentence without words stays empty: nothing to translate
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (encoded[i].size() > 2) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return encoded[a].size() < encoded[b].size(); });
  std::vector<std::string> out(sentences.size());
  for (size_t begin = 0; begin < order.size(); begin += max_batch) {
    const size_t end = std::min(begin + max_batch, order.size());
    std::vector<std::vector<int32_t>> rows;
    std::vector<int64_t> longest;
    for (size_t i = begin; i < end; ++i) {
      rows.push_back(encoded[order[i]]);
      longest.push_back(std::min<int64_t>(static_cast<int64_t>(rows.back().size()) + options.max_extra_tokens,
                                          max_length - 1));
    }
    const Source batch = rectangle(rows, source.pad());
    const Tensor states = model.encode(batch.ids, batch.lengths, {.editor = editor});
    Decoding start = model.start(states, batch.lengths);
    start.editor = editor;
    const std::vector<Hypothesis> found =
        options.beam_size == 1
            ? greedy(model, std::move(start), longest, decode_ids(target, options))
            : beam_search(model, std::move(start), longest, decode_ids(target, options), options);
    for (size_t i = begin; i < end; ++i) out[order[i]] = target.decode(found[i - begin].ids);
  }
  return out;
}

std::vector<MapView> translation_maps(TranslationModel& model, const std::string& sentence,
                                      const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                                      const DecodeOptions& options, std::string& caption) {
  const NoGrad no_tape;
  const std::vector<int32_t> ids = framed(source, sentence, max_length);
  const Source batch = rectangle({ids}, source.pad());
  MapRecorder encoder_probe, decoder_probe;
  const Tensor states = model.encode(batch.ids, batch.lengths, {.recorder = &encoder_probe});
  const int64_t room =
      std::min<int64_t>(static_cast<int64_t>(ids.size()) + options.max_extra_tokens, max_length - 1);
  const std::vector<int32_t> made =
      greedy(model, model.start(states, batch.lengths), {room}, decode_ids(target, options))[0].ids;
  std::vector<int32_t> read = made, written = made;
  read.insert(read.begin(), target.start());
  written.push_back(target.end());
  model.decode(rectangle({read}, target.pad()).ids, states, batch.lengths, {.recorder = &decoder_probe});
  caption = sentence + "  \u2192  " + target.decode(made);
  std::vector<MapView> views;
  const auto layer_of = [](const std::string& name) {
    const size_t at = name.find("blocks.");
    return at == std::string::npos ? int64_t{0} : static_cast<int64_t>(std::stoll(name.substr(at + 7)));
  };
  const std::vector<std::string> in = pieces(source, ids);
  const auto show = [&](const MapRecorder::Map& map) {
    const std::string name = name_of(model, map.module);
    if (name.starts_with("encoder")) {
      views.push_back(map_view(model, map, "encoder self", layer_of(name), in, in));
    } else if (name.find(".cross") != std::string::npos) {
      views.push_back(map_view(model, map, "cross", layer_of(name), pieces(target, written), in));
    } else {
      views.push_back(
          map_view(model, map, "decoder self", layer_of(name), pieces(target, read), pieces(target, read)));
    }
  };
  for (const MapRecorder::Map& map : encoder_probe.maps) show(map);
  for (const MapRecorder::Map& map : decoder_probe.maps) show(map);
  return views;
}

}  // namespace heed
