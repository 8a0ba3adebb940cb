// heed translate: translates sentences with a trained run.
#include <unistd.h>

#include "heed/core/io/files.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/decode/translator.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/loaded_run.h"

namespace heed {
namespace {

/// Warns of sentences that are longer than the model reads.
void warn_of_cut(const std::vector<std::string>& sentences, const Tokenizer& source, int64_t max_length) {
  int64_t cut = 0;
  std::string first;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const int64_t more = tokens_left_out(source, sentences[i], max_length);
    if (more > 0 && ++cut == 1)
      first = text("of sentence ", i + 1, " the last ", more, more == 1 ? " token is" : " tokens are",
                   " left out");
  }
  if (cut == 0) return;
  io::print_error(text("warning: ", first, ", since the model reads ", source_room(source, max_length),
                       " of a sentence\n"));
  if (cut > 1)
    io::print_error(text("warning: ", cut - 1, cut == 2 ? " other is" : " others are", " cut, too\n"));
}

int run_translate(const ParsedArguments& arguments) {
  apply_machine(arguments);
  LoadedRun run = load_run(arguments.positional[0], {.checkpoint = arguments.get("checkpoint")});
  auto* model = dynamic_cast<TranslationModel*>(run.model.get());
  if (model == nullptr)
    fail("translate: ", arguments.positional[0], " is a run of the task ", run.config.task_name,
         ", not of a translator.");
  apply_decoding(run.config, arguments);
  const std::vector<NamedBytes> files = tokenizer_files(run.checkpoint);
  const auto source = artifact_tokenizer(files, "source");
  const auto own = artifact_tokenizer(files, "target");
  if (!source) fail(Fault::data, "translate: the checkpoint holds no tokenizer.");
  const Tokenizer& target = own ? *own : *source;
  const NarrowWeights narrow = narrowed(*run.model, arguments);
  const NarrowWeights::Used used(narrow);
  const auto put = [&](const std::vector<std::string>& sentences) {
    warn_of_cut(sentences, *source, run.config.model.max_length);
    for (const std::string& line :
         translate_all(*model, sentences, *source, target, run.config.model.max_length, run.config.decode)) {
      io::print_data(line + "\n");
    }
    io::flush_output();
  };
  if (arguments.positional.size() > 1) {
    put({arguments.positional.begin() + 1, arguments.positional.end()});
  } else if (isatty(STDIN_FILENO) == 1) {  // a person types: answer each line
    io::InputLines input;
    while (const auto line = input.next()) put({*line});
  } else {
    std::vector<std::string> lines;
    io::InputLines input;
    while (auto line = input.next()) lines.push_back(std::move(*line));
    put(lines);
  }
  return 0;
}

}  // namespace

Command command::translate() {
  return {.name = "translate",
          .about = "translate sentences with a trained run; reads standard input when none is given",
          .positional = "RUN [TEXT...]",
          .positional_help = "the folder of a run, and sentences; left out: standard input",
          .min_positional = 1,
          .max_positional = 1000,
          .options = with_machine_options(with_decoding_options({precision_option, checkpoint_option})),
          .run = run_translate};
}

}  // namespace heed
