// Translation with a trained encoder-decoder, and its attention maps.
#pragma once

#include <string>
#include <vector>

#include "heed/attention/inspect/lens_view.h"
#include "heed/attention/inspect/map_view.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/nn/transformer.h"
#include "heed/train/config/config.h"

namespace heed {

/// Tokens of a sentence without its special ones that a model of `max_length` tokens reads.
int64_t source_room(const Tokenizer& source, int64_t max_length);

/// Tokens of a sentence that translate_all() leaves out, since the model reads `max_length` with those of
/// start and end; 0: it reads them all.
int64_t tokens_left_out(const Tokenizer& source, const std::string& sentence, int64_t max_length);

/// Fails for a sentence, or a target behind " ||| ", that translation_maps() would truncate.
void refuse_long(const std::string& sentence, const Tokenizer& source, const Tokenizer& target,
                 int64_t max_length);

/// Translates sentences in batches of similar length. Truncates a sentence that is too long for the model;
/// one without words stays empty. `editor` edits the heads of encoder and decoder.
std::vector<std::string> translate_all(const TranslationModel& model,
                                       const std::vector<std::string>& sentences, const Tokenizer& source,
                                       const Tokenizer& target, int64_t max_length,
                                       const DecodeOptions& options, HeadEditor* editor = nullptr);

/// Translates one sentence greedily, in evaluation mode without padding, and returns every attention map:
/// encoder self, decoder self, cross. Rows of cross maps are the words written, rows of decoder maps the
/// words read. Truncates a sentence that is too long, and says so in the caption; `options` bound the output,
/// whatever their beam. A sentence "SOURCE ||| TARGET" is not translated: the decoder reads TARGET. An
/// attribution is of the log probability of the words written.
std::vector<MapView> translation_maps(TranslationModel& model, const std::string& sentence,
                                      const Tokenizer& source, const Tokenizer& target, int64_t max_length,
                                      const DecodeOptions& options, std::string& caption,
                                      const MapParts& parts = {});

/// What each layer of the decoder would write next, for a sentence as translation_maps() takes it. Fails for
/// models other than EncoderDecoder.
LensView translation_lens(TranslationModel& model, const std::string& sentence, const Tokenizer& source,
                          const Tokenizer& target, int64_t max_length, const DecodeOptions& options);

}  // namespace heed
