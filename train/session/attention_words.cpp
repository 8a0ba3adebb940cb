// Which attentions a model has, by its kind.
#include "heed/train/session/attention_words.h"

#include "heed/nn/encoder_models.h"
#include "heed/nn/seq2seq.h"

namespace heed {

std::string attention_words(const Config& config, Module& model) {
  const AttentionOptions& attention = config.attention;
  if (dynamic_cast<DecoderOnly*>(&model) != nullptr) return "attention " + attention.decoder;
  if (dynamic_cast<EncoderModel*>(&model) != nullptr) return "attention " + attention.encoder;
  if (dynamic_cast<TranslationModel*>(&model) == nullptr) return "";  // of a task that knows itself
  if (config.model.kind == ModelKind::transformer)
    return text("attention ", attention.encoder, " / ", attention.decoder, " / cross ", attention.cross);
  return text(config.model.recurrent.cell == CellKind::lstm ? "LSTM" : "GRU", " encoder-decoder, ",
              to_string(config.model.recurrent.wiring),
              has_attention(config.model.recurrent.wiring) ? ", cross-attention " + attention.cross
                                                           : ", a fixed context without attention");
}

}  // namespace heed
