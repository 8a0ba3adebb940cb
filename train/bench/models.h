// Models on random tokens, one function per kind of workload.
#pragma once

#include "heed/train/bench/workload.h"

namespace heed::bench {

/// A language model over a vocabulary of 65 characters.
Workload character_model(std::shared_ptr<Config> config);
/// A language model over a vocabulary of 50,304 tokens: that of GPT-2, rounded up to a multiple of 64.
Workload gpt2_model(std::shared_ptr<Config> config);
/// A translator with vocabularies of 15,698 and 22,463 words. Sentence lengths are log-normal with mean 30;
/// batches of eight sentences are padded to max_length, and logits are computed for every position.
Workload translator_literal(std::shared_ptr<Config> config);
/// translator_literal() with logits for real target tokens only, not for padding.
Workload translator_padded(std::shared_ptr<Config> config);
/// translator_padded() on batches of sentences of similar length, padded to the longest of each batch.
Workload translator_real(std::shared_ptr<Config> config);
/// A classifier of token sequences into ten classes.
Workload token_classifier(std::shared_ptr<Config> config);
/// A classifier of sequences of vectors with 16 features into ten classes.
Workload patch_classifier(std::shared_ptr<Config> config);

}  // namespace heed::bench
