// Loads the model, tokenizers and settings of a translation run.
#include "heed/train/decode/load_translator.h"

#include "heed/core/io/files.h"
#include "heed/nn/init.h"
#include "heed/train/config/config.h"
#include "heed/train/decode/translator.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {

Translator load_translator(const Path& run, std::string_view which) {
  const RunFolder folder = RunFolder::look(run);
  Translator out;
  out.config = read_config(io::read(folder.config()), folder.config().string());
  const Checkpoint checkpoint =
      open_checkpoint(run, which == "best" && !best_step(run) ? "last" : which, HeldFiles::all_but_tensors);
  const std::vector<NamedBytes> tokenizers = tokenizer_files(checkpoint);
  out.config.task->load_artifacts(out.config, tokenizers);
  Rng rng(static_cast<uint64_t>(out.config.train.seed));
  {
    const SkipInit skips;
    out.module = new_model(out.config, rng);
  }
  load(*out.module, checkpoint.path("model.safetensors"));
  out.model = dynamic_cast<TranslationModel*>(out.module.get());
  if (out.model == nullptr)
    fail("load_translator: ", run, " is a run of the task ", out.config.task_name, ", not of a translator.");
  out.source = artifact_tokenizer(tokenizers, "source");
  out.target = artifact_tokenizer(tokenizers, "target");
  if (!out.source)
    fail(Fault::data, "load_translator: the checkpoint ", checkpoint.folder, " holds no tokenizer.");
  return out;
}

std::vector<std::string> Translator::translate(const std::vector<std::string>& sentences) const {
  return translate_all(*model, sentences, *source, target ? *target : *source, config.model.max_length,
                       config.decode);
}

}  // namespace heed
