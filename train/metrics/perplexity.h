// Perplexity, and bits per byte, from a cross entropy in nats.
#pragma once

#include <algorithm>
#include <cmath>

namespace heed {

/// Perplexity of a mean cross entropy in nats per token: exp(nats_per_token).
inline double perplexity_of(double nats_per_token) { return std::exp(nats_per_token); }

/// Bits per byte of a text whose tokens have `total_nats` of cross entropy together. It does not depend on
/// the tokenizer, so models with different ones compare. A text without bytes counts as one byte.
inline double bits_per_byte(double total_nats, double bytes) {
  return total_nats / (std::log(2.0) * std::max(bytes, 1.0));
}

/// Perplexity per word of a text whose tokens have `total_nats` of cross entropy together. A text without
/// words counts as one word.
inline double word_perplexity(double total_nats, double words) {
  return perplexity_of(total_nats / std::max(words, 1.0));
}

}  // namespace heed
