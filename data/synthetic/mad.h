// The six tasks of MAD, mechanistic architecture design: recall, copying, compression, memorization.
#pragma once

#include "heed/data/synthetic/counter_rng.h"
#include "heed/data/synthetic/scored_sequence.h"

namespace heed {

/// Settings of the tasks of MAD. Poli et al. 2024, arXiv 2403.17844. Distributions are those of
/// athms/mad-lab, mad/data/instances.py, with multi_query = True as in all of its configurations. Defaults
/// are the basis of in-context recall; each function names the settings that it reads.
struct MadOptions {
  int64_t vocabulary = 16;       ///< tokens, special ones and noise included
  int64_t length = 128;          ///< "seq_len" of the published code
  int64_t noise_vocabulary = 0;  ///< tokens of noise, the last of the vocabulary
  double noise = 0;              ///< probability that a pair is replaced by noise
  int64_t max_key = 3;           ///< maximum number of tokens of a key
  int64_t max_value = 3;         ///< maximum number of tokens of a value
  int64_t copied = 16;           ///< tokens to copy
};

/// What sequences are for. In the published code, recall is trained on each next token of the sequence and
/// tested on the values of keys that have been seen before.
enum class MadUse { training, test };

/// In-context recall, with noise above 0 noisy recall: pairs of a key and its value, drawn with replacement;
/// a key keeps its value. Of the tokens that are no noise the first half are keys, the others values. The
/// last pair is always of a key that was seen. T = length - 1, since targets are next tokens. Reads
/// vocabulary, length (even), noise_vocabulary, noise. At least one pair is no noise, here always one before
/// the last, which is never noise.
ScoredSequence mad_recall(const MadOptions& options, MadUse use, CounterRng rng);

/// Fuzzy in-context recall: keys and values are runs of 1 to max_key and max_value different tokens; keys of
/// the test have max_key. T = length, with padding, the last token of the vocabulary, in front. Reads
/// vocabulary, length, max_key, max_value. As in the published code, the pair that is asked at the end stands
/// before it unless its place was drawn too late, and padding is a target in training.
ScoredSequence mad_fuzzy_recall(const MadOptions& options, MadUse use, CounterRng rng);

/// Selective copying: `copied` random tokens with blanks between and before them, then a token that asks for
/// them, then as many blanks, at which they are the targets. The last two tokens of the vocabulary are the
/// blank and the one that asks. T = length. Reads vocabulary, length, copied.
ScoredSequence mad_selective_copying(const MadOptions& options, CounterRng rng);

/// Compression: T - 1 random tokens, then the last token of the vocabulary. Each place's own token is its
/// target, also the last one's: see SequenceAutoencoder (train/tasks/synthetic/). T = length. Reads
/// vocabulary, length.
ScoredSequence mad_compression(const MadOptions& options, CounterRng rng);

/// The value of each key of memorization: different ones. Keys are tokens 0 to (vocabulary - 1) / 2 - 1,
/// values those up to the last but one.
std::vector<int64_t> mad_memorized_values(const MadOptions& options, uint64_t seed);

/// Memorization: a random key, then the last token of the vocabulary, and so on; at the latter the value of
/// the key is the target. `values` are of mad_memorized_values(). T = length (even). Reads vocabulary,
/// length.
ScoredSequence mad_memorization(const MadOptions& options, const std::vector<int64_t>& values,
                                CounterRng rng);

}  // namespace heed
