// heed circuit: which edges between heads and networks of a trained model decide between two answers.
#include "heed/train/inspect/circuit.h"

#include "heed/autograd/comparisons.h"
#include "heed/core/io/files.h"
#include "heed/core/io/terminal.h"
#include "heed/data/tokenizers/streamed_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

/// The tokens of a text that an option gives; at least one. `encode` is encode_lines or encode_prompt.
std::vector<int32_t> tokens_of_option(std::vector<int32_t> encode(const Tokenizer&, std::string_view),
                                      const Tokenizer& tokenizer, const ParsedArguments& arguments,
                                      const std::string& option) {
  std::vector<int32_t> ids = encode(tokenizer, arguments.get(option));
  if (ids.empty()) fail("--", option, " is empty. Give a text of at least one token.");
  return ids;
}

/// The most probable token behind place `position` of tokens.
int32_t predicted_token(const DecoderOnly& model, const std::vector<int32_t>& ids, int64_t position) {
  const NoGrad no_grad;
  const Tensor hidden = model.hidden(Tensor::of<int32_t>(ids, Shape{1, std::ssize(ids)}), {});
  return static_cast<int32_t>(argmax(model.logits(select(hidden, 1, position)), 1).item());
}

/// The token of an option; where it is not given, the one that the model predicts for `ids`.
int32_t answer_of(const Tokenizer& tokenizer, const ParsedArguments& arguments, const std::string& option,
                  const DecoderOnly& model, const std::vector<int32_t>& ids, int64_t position) {
  if (!arguments.has(option)) return predicted_token(model, ids, position);
  const std::vector<int32_t> answer = tokens_of_option(encode_lines, tokenizer, arguments, option);
  if (answer.size() > 1) {
    std::string pieces;
    for (const int32_t id : answer) pieces += text(pieces.empty() ? "'" : ", '", tokenizer.piece(id), "'");
    fail("--", option, " '", terminal_word(arguments.get(option)), "' is ", answer.size(),
         " tokens: ", terminal_word(pieces), ". Give one token, such as the first of them.");
  }
  return answer[0];
}

/// The pair of --clean and --corrupted.
ContrastPair given_pair(const LoadedRun& run, const ParsedArguments& arguments) {
  const auto* model = dynamic_cast<const DecoderOnly*>(run.model.get());
  const auto tokenizer = artifact_tokenizer(tokenizer_files(run.checkpoint), "text");
  if (model == nullptr || !tokenizer)
    fail("circuit: --clean and --corrupted are for a run of a language model, and this is one of the task ",
         run.config.task_name, ". Leave them out for a run of mqar, mad-recall or mad-noisy.");
  ContrastPair pair{.clean = tokens_of_option(encode_prompt, *tokenizer, arguments, "clean"),
                    .corrupted = tokens_of_option(encode_prompt, *tokenizer, arguments, "corrupted")};
  const auto length = std::ssize(pair.clean);
  if (std::ssize(pair.corrupted) != length)
    fail("--clean has ", length, " tokens and --corrupted ", pair.corrupted.size(),
         ". Give texts of as many tokens, so that each token has a counterpart.");
  if (length > model->max_length())
    fail("--clean has ", length, " tokens, and the model reads ", model->max_length(),
         " at most. Shorten both texts.");
  pair.position = arguments.integer("position", length - 1, 0, length - 1);
  pair.right = answer_of(*tokenizer, arguments, "answer", *model, pair.clean, pair.position);
  pair.wrong = answer_of(*tokenizer, arguments, "wrong", *model, pair.corrupted, pair.position);
  if (pair.right == pair.wrong)
    fail("circuit: the answers to both texts are '", terminal_word(tokenizer->piece(pair.right)),
         "'. Give two tokens by --answer and --wrong.");
  return pair;
}

/// The pairs that the arguments ask for: given texts, or swaps of keys in test sequences.
std::vector<ContrastPair> asked_pairs(const LoadedRun& run, const ParsedArguments& arguments) {
  const bool is_given = arguments.has("clean");
  if (is_given != arguments.has("corrupted"))
    fail("circuit: --clean and --corrupted go together. Give both.");
  if (is_given) {
    if (arguments.has("examples"))
      fail("circuit: --examples counts test sequences, and --clean gives the input. Leave one out.");
    return {given_pair(run, arguments)};
  }
  for (const char* option : {"answer", "wrong", "position"})
    if (arguments.has(option))
      fail("circuit: --", option, " is for --clean and --corrupted. Give these, too.");
  if (artifact_tokenizer(tokenizer_files(run.checkpoint), "text"))
    fail("circuit: a language model needs two texts. Give --clean TEXT and --corrupted TEXT.");
  return contrast_pairs(*run.config.task, arguments.integer("examples", 20, 1));
}

int run_circuit(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const CircuitOptions options{.steps = arguments.integer("steps", 5, 1, 1000),
                               .is_exact = arguments.has("exact")};
  const int64_t top = arguments.integer("top", 20, 1);
  Progress progress;
  progress.quiet = arguments.has("json");
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint"),
                                                     .with_data = !arguments.has("clean"),
                                                     .progress = &progress});
  const std::vector<ContrastPair> pairs = asked_pairs(run, arguments);
  CircuitReport report;
  {
    const ProgressScope shown(progress, "circuit");
    report = circuit(*run.model, pairs, options);
  }
  if (arguments.has("json")) {
    Json json = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
    const Json results = circuit_json(report);
    for (const JsonMember& member : results.members()) json.append(member.key, member.value);
    io::print_data(json.dump() + "\n");
    return 0;
  }
  io::print(circuit_text(report, top));
  return 0;
}

std::string explanation_of_scores() {
  return "An edge leads from the output of the embedding, a head or a feed-forward network to what a later "
         "one reads. Its effect is the change of the logit difference, of the right answer less the wrong "
         "one, where this edge alone carries what it carries on the corrupted input: negative where it "
         "speaks "
         "for the right answer. score estimates the effect of all edges at once (edge attribution patching "
         "with integrated gradients); --exact measures each edge (path patching).\n";
}

}  // namespace

Command command::circuit() {
  return {.name = "circuit",
          .about = "find which edges between heads decide about an answer: attribution, path patching",
          .positional = "RUN",
          .positional_help = "the folder of a run of a language model, of mqar, mad-recall or mad-noisy",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(
              {{"clean", "TEXT", "language models: a text whose next token is asked for"},
               {"corrupted", "TEXT", "a text of as many tokens with another answer"},
               {"answer", "TOKEN", "right answer (default: the most probable token behind --clean)"},
               {"wrong", "TOKEN", "wrong answer (default: the most probable one behind --corrupted)"},
               {"position", "N", "the token whose next one is asked for, from 0 (default: the last)"},
               {"examples", "N",
                "other tasks: the first test sequences, each also with two keys swapped (default: 20)"},
               {"steps", "N", "steps of the integrated gradients; 1: plain attribution (default: 5)"},
               {"exact", "", "also measure each edge by path patching: a pass for each edge"},
               {"top", "N", "edges that are printed, the strongest first (default: 20)"},
               checkpoint_option,
               {"json", "", "one JSON object with all edges, in place of the table"}}),
          .run = run_circuit,
          .more = explanation_of_scores};
}

}  // namespace heed
