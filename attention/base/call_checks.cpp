// Checks of calls that several attentions share.
#include "heed/attention/base/call_checks.h"

#include <cmath>

namespace heed {

double attention_scale(double scale, int64_t d) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d));
}

namespace {

/// Fails unless x is [B, T, width] with at least one sequence and token.
void check_tokens(const std::string& who, const char* name, const Tensor& x) {
  if (x.rank() == 3 && x.extent(0) > 0 && x.extent(1) > 0) return;
  fail(who, name, " are ", x ? text(x.shape()) : std::string("an empty tensor"),
       ". They must be [B, T, d_model], with at least one sequence and one token.",
       x.rank() == 2
           ? text(" reshape(x, Shape{1, ", x.extent(0), ", ", x.extent(1), "}) makes them one sequence.")
           : std::string());
}

/// Fails where queries could attend to later keys though the caller or the attention promises otherwise.
void check_causality(const std::string& who, const AttentionInput& input, const AttentionConfig& config) {
  const bool has_mask = input.mask.is_causal();
  if (has_mask && !config.follows_causal_mask)
    fail(who,
         "it cannot follow Mask::causal(): its outputs depend on later keys. Leave the mask out where that "
         "is allowed, or use another attention, such as softmax.");
  const int64_t queries = input.queries.extent(1);
  if (config.causal && !config.cross && !has_mask && queries > 1)  // a single one is the last position
    fail(who, "it was made with AttentionConfig::causal = true, and this call has ", queries,
         " queries and no causal mask, so they would attend to later keys. Give AttentionInput::mask = "
         "Mask::causal().");
}

}  // namespace

void check_call(const AttentionInput& input, const AttentionConfig& config) {
  const std::string who = config.name.empty() ? "attention: " : text("attention '", config.name, "': ");
  check_tokens(who, "queries", input.queries);
  if (input.keys) check_tokens(who, "keys", input.keys);
  const int64_t batch = input.queries.extent(0);
  if (input.keys && input.keys.extent(0) != batch && !input.mask.is_packed())
    fail(who, "queries ", input.queries.shape(), " and keys ", input.keys.shape(),
         " are not of the same number of sequences.");
  const int64_t cached = input.cache != nullptr ? sequences_of(*input.cache) : 0;
  if (cached > 0 && cached != batch)
    fail(who, "the cache is of ", cached, " sequences, and the call of ", batch,
         ". Use a new_cache() for each batch, and reorder() where sequences end.");
  check_causality(who, input, config);
}

void refuse_bias(const AttentionInput& input, const char* mechanism) {
  if (input.mask.bias())
    fail("attention: ", mechanism, " takes no bias on its scores. Leave the bias out, or use softmax.");
}

void refuse_map_of_cached_call(const AttentionInput& input) {
  if (input.cache == nullptr || input.context.recorder == nullptr) return;
  fail(
      "attention: the cache holds sums, which do not tell single keys apart, so a call with a cache has no "
      "map. Record a call with all keys.");
}

void check_equal_lengths(const char* name, int64_t queries, int64_t keys, const char* advice) {
  if (queries != keys) fail("attention '", name, "': ", queries, " queries for ", keys, " keys. ", advice);
}

void fail_without_keys() {
  fail("attention: no keys were given and none are cached. Give keys in the first call.");
}

}  // namespace heed
