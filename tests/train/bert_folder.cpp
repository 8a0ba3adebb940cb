// Makes a small BERT and its folder.
#include "heed/tests/train/bert_folder.h"

#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/data/tokenizers/wordpiece.h"
#include "heed/train/run/huggingface_folder.h"

namespace heed {

std::unique_ptr<Tokenizer> small_wordpiece() {
  WordPieceLists lists{.pieces = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "##s",
                                  "sat", "##t", "##in", "##g", ".", "a", "b"}};
  lists.num_word_pieces = static_cast<int64_t>(lists.pieces.size());
  lists.found_in_texts = {0, 1, 2, 3, 4};
  lists.special = {.unknown = 1, .pad = 0, .start = 2, .end = 3, .mask = 4};
  return make_wordpiece(std::move(lists), "small");
}

TransformerConfig small_bert() {
  TransformerConfig out{.d_model = 12, .heads = 2, .d_ff = 20, .layers = 2, .max_length = 16};
  out.dropout = 0;
  out.activation = Activation::gelu;
  out.norm = NormPlace::post;
  out.norm_epsilon = 1e-12;
  out.position = PositionKind::learned;
  out.tie_embeddings = Tie::output;
  out.tied_output_bias = true;
  out.scale_embedding = false;
  out.attention_bias = true;
  return out;
}

MaskedLanguageModel bert_model(uint64_t seed, const TransformerConfig& config) {
  const NoGrad no_grad;
  Rng rng(seed);
  MaskedLanguageModel out(config, {.vocabulary = small_wordpiece()->size(), .token_types = 2},
                          attention_factory("softmax"), rng);
  visit_tensors(out, [&](const std::string&, Tensor& x) {
    if (x.rank() == 1) fill_uniform(x.detach(), 0.5, 1.5, rng);
  });
  return out;
}

void SmallBert::write(const Path& folder) const {
  for (const NamedBytes& one : huggingface_files(exported)) io::write(folder / one.name, one.bytes);
}

}  // namespace heed
