// Using a trained encoder-decoder: sentences in, sentences out, and its maps.
#pragma once

#include <string>
#include <vector>

#include "attention/map_view.h"
#include "data/tokenizer.h"
#include "nn/transformer.h"
#include "train/config.h"

namespace heed {

/// Translates sentences in batches of like length. A sentence longer than the model can read is cut;
/// one without words stays empty.
std::vector<std::string> translate_all(const TranslationModel& model,
                                       const std::vector<std::string>& sentences, const Tokenizer& source,
                                       const Tokenizer& target, int64_t max_length,
                                       const DecodeOptions& options);

/// Translates one sentence greedily and shows every map of that pass: encoder self, decoder self, cross;
/// evaluation mode, no padding. Rows of cross maps are the words written, rows of decoder maps the words
/// read. A sentence longer than the model can read is cut; the output is at most `extra` tokens longer.
std::vector<MapView> translation_maps(TranslationModel& model, const std::string& sentence,
                                      const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                                      int64_t extra, std::string& caption);

}  // namespace heed
