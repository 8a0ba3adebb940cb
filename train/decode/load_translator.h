// A trained translator, ready to use: from a run folder to sentences.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heed/data/tokenizers/tokenizer.h"
#include "heed/nn/transformer.h"
#include "heed/train/config/config.h"

namespace heed {

/// The model, tokenizers and settings of a run of the task translate.
struct Translator {
  Config config;                      ///< settings of the run; `decode` may be changed between translations
  std::unique_ptr<Module> module;     ///< owns `model`
  TranslationModel* model = nullptr;  ///< encodes and decodes
  std::unique_ptr<Tokenizer> source;  ///< tokenizer of sentences to translate
  std::unique_ptr<Tokenizer> target;  ///< tokenizer of translations; null where both sides share one

  /// Translates sentences, greedily unless config.decode says otherwise.
  std::vector<std::string> translate(const std::vector<std::string>& sentences) const;
  /// Translates one sentence.
  std::string translate(const std::string& sentence) const { return translate(std::vector{sentence})[0]; }
};

/// Opens a run for use; reads no training data. `which`: best (the last checkpoint where none is marked),
/// last, or a number of steps. Fault::file where the folder is no run, Fault::data where a checkpoint is
/// damaged, Fault::usage for a run of another task.
Translator load_translator(const Path& run, std::string_view which = "best");

}  // namespace heed
