// Models on random tokens: one function a kind of shape.
#pragma once

#include "train/bench/workload.h"

namespace heed::bench {

/// Characters, 65 of them, predicted from those before.
Workload language_model(std::shared_ptr<Config> config);
/// Sentences whose lengths are log-normal with mean 30, eight at a time, all padded to max_length; every
/// position reaches the output layer, 15,698 and 22,463 words.
Workload translator_literal(std::shared_ptr<Config> config);
/// The same, where only targets that are no padding reach the output layer.
Workload translator_padded(std::shared_ptr<Config> config);
/// Sentences of the same lengths, those of like length together, padded to the longest of their batch.
Workload translator_real(std::shared_ptr<Config> config);
/// Ids to ten classes.
Workload token_classifier(std::shared_ptr<Config> config);
/// Vectors of 16 values to ten classes.
Workload patch_classifier(std::shared_ptr<Config> config);

}  // namespace heed::bench
