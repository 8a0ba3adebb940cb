// Models on random tokens, one function per kind of workload.
#pragma once

#include "heed/train/bench/workload.h"

namespace heed::bench {

/// Predicts the next of 65 characters.
Workload language_model(std::shared_ptr<Config> config);
/// Translator of sentences with log-normal lengths of mean 30, eight per batch, all padded to max_length;
/// computes logits of every position; vocabularies of 15,698 and 22,463 words.
Workload translator_literal(std::shared_ptr<Config> config);
/// The translator of translator_literal(), which computes logits of real target tokens only.
Workload translator_padded(std::shared_ptr<Config> config);
/// The translator of translator_padded() on sentences batched by length and padded to the longest of their
/// batch.
Workload translator_real(std::shared_ptr<Config> config);
/// Classifies token ids into ten classes.
Workload token_classifier(std::shared_ptr<Config> config);
/// Classifies vectors of 16 values into ten classes.
Workload patch_classifier(std::shared_ptr<Config> config);

}  // namespace heed::bench
