// Checks of calls that several attentions share, and the scale of their scores.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// The factor of dot products of width d: `scale`, or 1 / sqrt(d) where `scale` is 0.
double attention_scale(double scale, int64_t d);
/// The common check of a call, for every attention's forward(): queries [B, Tq, d_model] and keys [B, Tk,
/// d_model], if given, with all extents at least 1, and a cache of B sequences. Refuses a causal mask where
/// the attention cannot follow one, and a call without one, of several queries, to a self-attention that was
/// made causal: they would attend to later keys.
void check_call(const AttentionInput& input, const AttentionConfig& config);
/// Fails when the call has an additive bias. `mechanism` is the subject of the message: "a sparse pattern".
void refuse_bias(const AttentionInput& input, const char* mechanism);
/// Fails when a call with a cache records a map, for caches that keep sums over keys instead of the keys.
void refuse_map_of_cached_call(const AttentionInput& input);
/// Fails when the numbers of queries and of keys differ. `advice` ends the message.
void check_equal_lengths(const char* name, int64_t queries, int64_t keys, const char* advice);
/// Fails because a call has no keys and its cache is empty.
[[noreturn]] void fail_without_keys();

}  // namespace heed
