// heed generate: generates text from a prompt with a language model.
#include "heed/core/io/files.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/json_tokenizer.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/decode/sampling.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

SampleOptions sample_options(const ParsedArguments& arguments) {
  SampleOptions options;
  for (const OptionText& option : options_of(options)) {
    std::string dashed = option.name;
    for (char& c : dashed) c = c == '_' ? '-' : c;
    if (arguments.has(dashed)) set_option(options, option.name, arguments.get(dashed), "--" + dashed + ": ");
  }
  options.check();
  return options;
}

/// True where special tokens stand for themselves in every text, as the added ones of a tokenizer.json do.
bool always_parses_special(const Tokenizer& tokenizer) { return tokenizer.kind() == "tokenizer_json"; }

/// The ids of special tokens.
std::vector<int32_t> special_ids(const Tokenizer& tokenizer) {
  if (always_parses_special(tokenizer)) return special_added_ids(tokenizer);
  std::vector<int32_t> out;
  for (const auto& [id, content] : byte_pair_lists(tokenizer).special) out.push_back(id);
  return out;
}

/// Encodes prompts; special tokens in them stand for themselves where `parses_special` is true.
struct PromptEncoder {
  const Tokenizer& tokenizer;
  bool parses_special;
  std::vector<int32_t> encode(const std::string& prompt) const {
    if (prompt.empty()) return {};
    const bool by_name = parses_special && !always_parses_special(tokenizer);
    return by_name ? encode_with_special(tokenizer, prompt) : encode_prompt(tokenizer, prompt);
  }
};

std::vector<int32_t> prompt_ids(const PromptEncoder& encoder, const std::string& prompt) {
  std::vector<int32_t> ids = encoder.encode(prompt);
  if (ids.empty()) fail("--prompt is empty. Give at least one character, or leave it out.");
  return ids;
}

/// The tokens of a line of standard input; empty where the line is. An error names the line.
std::vector<int32_t> line_ids(const PromptEncoder& encoder, const std::string& line, int64_t number) {
  try {
    return encoder.encode(line);
  } catch (const Error& error) {
    throw Error(error.fault(), text("standard input:", number, ": ", error.what()));
  }
}

/// The prompt where none is given: the token with which texts begin, or a new line, or the first token of a
/// vocabulary without one.
std::vector<int32_t> plain_start(const Tokenizer& tokenizer) {
  if (tokenizer.document_start() >= 0) return {tokenizer.document_start()};
  try {
    return prompt_ids({tokenizer, false}, "\n");
  } catch (const Error&) {
    return {0};
  }
}

int run_generate(const ParsedArguments& arguments) {
  apply_machine(arguments);
  SampleOptions options = sample_options(arguments);
  const int64_t samples = arguments.integer("num-samples", 1, 1);
  const int64_t seed = arguments.integer("seed", 1, 0, INT64_MAX);
  LoadedRun run = load_run(arguments.positional[0],
                           {.checkpoint = arguments.get("checkpoint"), .swap = swap_of(arguments)});
  auto* model = dynamic_cast<DecoderOnly*>(run.model.get());
  if (model == nullptr)
    fail("generate: ", arguments.positional[0], " is a run of the task ", run.config.task_name,
         ", not of a language model.");
  const auto tokenizer = artifact_tokenizer(tokenizer_files(run.checkpoint), "text");
  if (!tokenizer) fail(Fault::data, "generate: the checkpoint holds no tokenizer.");
  const NarrowWeights narrow = narrowed(*run.model, arguments);
  const NarrowWeights::Used used(narrow);
  const int32_t end = tokenizer->end();
  const bool ends_line = end >= 0 && !decode_lines(*tokenizer, std::vector<int32_t>{end}).empty();
  // A document ends at its end token, and where the next one starts, as in llama2.c.
  if (!ends_line) options.stop_tokens = {end, tokenizer->document_start()};
  const PromptEncoder encoder{*tokenizer, arguments.has("parse-special")};
  if (encoder.parses_special) {  // in a chat, special tokens end an answer
    for (const int32_t id : special_ids(*tokenizer)) options.stop_tokens.push_back(id);
  }
  HeadAblation ablation({.kind = HeadReplacement::Kind::zero});
  if (arguments.has("without-heads"))
    ablation.replace(named_heads(heads_of_language_model(*model), arguments.get("without-heads")));
  bool first = true;
  const auto generate = [&](const std::string& prompt, const std::vector<int32_t>& ids) {
    for (int64_t i = 0; i < samples; ++i) {
      if (!first) io::print_data("---\n");
      first = false;
      if (ids.empty()) {  // an empty prompt gives an empty text, so that every line has its output
        io::print_data("\n");
        continue;
      }
      io::print_data(as_utf8(prompt));
      StreamedText streamed(*tokenizer, ids);
      options.seed = static_cast<uint64_t>(seed + i);
      options.on_token = [&](int32_t id) {
        io::print_data(as_utf8(streamed.add(id)));
        io::flush_output();
        return true;
      };
      if (!arguments.has("without-heads")) {
        sample(*model, ids, options);
      } else {
        Decoding state = model->start();
        state.editor = &ablation;
        sample(*model, ids, options, std::move(state));
      }
      io::print_data(as_utf8(streamed.rest()) + "\n");
    }
  };
  const std::string prompt = arguments.get("prompt");
  if (!arguments.has("prompt")) {
    generate("", plain_start(*tokenizer));
  } else if (prompt != "-") {
    generate(prompt, prompt_ids(encoder, prompt));
  } else {
    io::InputLines input;
    for (int64_t number = 1; const auto line = input.next(); ++number)
      generate(*line, line_ids(encoder, *line, number));
  }
  return 0;
}

}  // namespace

Command command::generate() {
  return {.name = "generate",
          .about = "generate text from a prompt, printed as it is made",
          .positional = "RUN",
          .positional_help = "the folder of a run of a language model",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(with_swap_options(
              {{"prompt", "TEXT", "the prompt (default: a new line); -: each line of standard input"},
               {"temperature", "T", "divides the logits; 0: always the most probable (default: 0.8)"},
               {"top-k", "K", "draw among the K most probable; 0: all (default: 200)"},
               {"top-p", "P", "draw among the most probable that have this share together (default: 1, all)"},
               {"repetition-penalty", "R", "divides what is in the context already; 1: none (default: 1)"},
               {"max-new-tokens", "N", "how many to make (default: 500)"},
               {"num-samples", "N", "how many texts of each prompt, with seeds that count up (default: 1)"},
               {"seed", "N", "seed of the draws (default: 1)"},
               {"parse-special", "",
                "special tokens such as <|im_start|> stand for themselves in a prompt, and end a text where "
                "they are made"},
               {"without-heads", "LIST",
                "heads or layers that give nothing, such as decoder.0.3,decoder.1; a text ends where the "
                "model's positions do"},
               precision_option,
               checkpoint_option})),
          .run = run_generate};
}

}  // namespace heed
