// heed bench decode: tokens per second of greedy decoding and beam search.
#include "heed/train/decode/beam_search.h"
#include "heed/train/decode/greedy.h"

#include <array>

#include "heed/core/io/files.h"
#include "heed/core/memory/storage.h"
#include "heed/train/bench/bench.h"
#include "heed/train/bench/measure.h"
#include "heed/train/bench/workload.h"

namespace heed::bench {
namespace {

constexpr int64_t source_tokens = 30, translated = 40, beam_size = 4;
constexpr int32_t start_id = 2;

/// A model and its inputs.
struct Decoder {
  std::string row;
  Workload work;
  const DecoderOnly* language_model = nullptr;
  const EncoderDecoder* translator = nullptr;
  NarrowWeights narrow;         ///< with --precision bf16
  int64_t tokens = 0;           ///< number of tokens of an output
  std::vector<int32_t> source;  ///< token ids of a translator's input

  Decoder(const std::string& name, const ParsedArguments& arguments)
      : row(name), work(workload(name, arguments)) {
    language_model = dynamic_cast<const DecoderOnly*>(work.model.get());
    translator = dynamic_cast<const EncoderDecoder*>(work.model.get());
    const int64_t longest = work.config->model.max_length;
    if (translator == nullptr && language_model == nullptr)
      fail("bench decode: ", name, " makes no tokens. Use baby, gpt-6x6x384 or translator-literal.");
    tokens = translator != nullptr ? std::min(translated, longest - 1) : longest - 1;
    if (work.config->train.precision == Precision::bf16)
      narrow = narrow_weights(*work.model, WeightFormat::bf16);
    if (translator == nullptr) return;
    Rng rng(1);
    for (int64_t i = 0; i < std::min(source_tokens, longest); ++i)
      source.push_back(static_cast<int32_t>(4 + rng.below(translator->source.tokens.weight.extent(0) - 4)));
  }

  /// Decodes `batch` outputs at once.
  std::vector<Hypothesis> decode(int64_t batch, int64_t beam) const {
    const NoGrad no_grad;
    const NarrowWeights::Used used(narrow);
    std::optional<Decoding> state;  // a language model makes its own
    if (translator != nullptr) {
      std::vector<int32_t> ids, lengths(static_cast<size_t>(batch), static_cast<int32_t>(source.size()));
      for (int64_t i = 0; i < batch; ++i) ids.insert(ids.end(), source.begin(), source.end());
      const Tensor many = Tensor::of<int32_t>(lengths, Shape{batch});
      state = translator->start(
          translator->encode(Tensor::of<int32_t>(ids, Shape{batch, static_cast<int64_t>(source.size())}),
                             many, {}),
          many);
    }
    const auto& model = dynamic_cast<const AutoregressiveModel&>(*work.model);
    // Without stop tokens, all outputs have the same length.
    const std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(batch), {start_id});
    return beam == 1 ? greedy_batch(model, prompts, {.max_new_tokens = tokens}, std::move(state))
                     : beam_search_batch(model, prompts, {.beam_size = beam, .max_new_tokens = tokens},
                                         std::move(state));
  }
};

Json list_of(const std::vector<int32_t>& ids) {
  Json out = Json::List();
  for (const int32_t id : ids) out.push(id);
  return out;
}

/// Saves weights and outputs, to compare with other programs.
void keep(const Decoder& decoder, const Path& folder) {
  io::make_directories(folder);
  io::write(folder / (decoder.row + ".safetensors"), save_bytes(*decoder.work.model));
  const TransformerConfig& model = decoder.work.config->model;
  const Json metadata = Json::object(
      {{"row", decoder.row},
       {"start", start_id},
       {"source", list_of(decoder.source)},
       {"ids", list_of(decoder.decode(1, 1)[0].ids)},
       {"beam", beam_size},
       {"beam_ids", list_of(decoder.decode(1, beam_size)[0].ids)},
       {"heads", model.heads},
       {"layers", model.layers},
       {"scale_embedding", model.scale_embedding},
       {"norm_epsilon", model.norm_epsilon},
       {"norm_scale", model.norm_scale == kernel::NormScale::deviation ? "deviation" : "variance"},
       {"activation", model.activation == Activation::gelu ? "gelu" : "relu"}});
  io::write(folder / (decoder.row + ".json"), metadata.dump());
}

void measure(const Decoder& decoder, int64_t batch, int64_t beam, Table& table) {
  const ContextSwitches interruptions;
  reset_peak();
  const double taken = median_time([&] { decoder.decode(batch, beam); }, 0.6, 3);
  const auto total = static_cast<double>(batch * decoder.tokens);
  table.row(
      with_machine_metadata(Json::object({{"row", decoder.row},
                                          {"batch", batch},
                                          {"beam", beam},
                                          {"tokens", decoder.tokens},
                                          {"tokens_per_s", total / taken},
                                          {"us_per_step", 1e6 * taken / static_cast<double>(decoder.tokens)},
                                          {"ms", 1e3 * taken},
                                          {"tensors_mib", static_cast<double>(memory_use().peak) / (1 << 20)},
                                          {"interruptions_per_s", interruptions.per_second()}})));
}

}  // namespace

void bench_decode(const ParsedArguments& arguments) {
  std::vector<std::string> names(arguments.positional.begin() + 1, arguments.positional.end());
  if (names.empty()) names = {"baby", "gpt-6x6x384", "translator-literal"};
  for (const std::string& name : names) check_name(name, "decode");
  Table table({{"row", "row"},
               {"batch", "batch", 0},
               {"beam", "beam", 0},
               {"tokens", "tokens", 0},
               {"tokens/s", "tokens_per_s", 0},
               {"us a step", "us_per_step", 0},
               {"tensors MiB", "tensors_mib", 0}},
              arguments.has("json"));
  for (const std::string& name : names) {
    const Decoder decoder(name, arguments);
    if (arguments.has("out")) keep(decoder, arguments.get("out"));
    for (const int64_t beam : {int64_t{1}, beam_size}) {
      for (const int64_t batch : {1, 32}) measure(decoder, batch, beam, table);
    }
  }
}

}  // namespace heed::bench
