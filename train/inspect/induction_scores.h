// Induction heads: heads that look behind the previous occurrence of a token, found on repeated sequences.
#pragma once

#include <functional>
#include <vector>

#include "heed/attention/inspect/corpus_head_measures.h"
#include "heed/attention/inspect/model_heads.h"

namespace heed {

/// Random sequences that repeat themselves.
struct RepeatOptions {
  int64_t vocabulary = 0;  ///< ids are drawn from 0 <= id < vocabulary
  int64_t period = 50;     ///< number of random tokens, which are then repeated once; at least 2
  int64_t sequences = 8;   ///< number of sequences
  uint64_t seed = 1;       ///< seed of the draws
};

/// Token ids i32 [sequences, 2 period]: random tokens, each sequence repeated once. Fails for illegal
/// options.
Tensor repeated_sequences(const RepeatOptions& options);

/// The scores of one head.
struct HeadRepeatScores {
  ModelHead head{};       ///< the head
  RepeatScores scores{};  ///< means over the sequences
};

/// The scores of the heads of every recorded map [B, H, T, T] over sequences that repeat after `period`
/// tokens, [maps][heads]: means over the batch. Fails for maps of another shape.
std::vector<std::vector<RepeatScores>> mean_repeat_scores(const MapRecorder& recorder, int64_t period);

/// Runs a causal model on repeated_sequences() and returns, for each head in the order of the forward pass,
/// the mean weight from a token of the second half to the one behind its first occurrence, and to the token
/// before itself (Olsson et al. 2022, arXiv 2209.11895). `forward` runs the model on ids i32 [B, T] with the
/// context that it gets. Fails when an attention with heads records no map, and when one is not part of the
/// model.
std::vector<HeadRepeatScores> induction_scores(
    Module& model, const std::function<void(const Tensor& ids, const ForwardContext& context)>& forward,
    const RepeatOptions& options);

}  // namespace heed
