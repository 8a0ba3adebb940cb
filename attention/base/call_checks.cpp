// Checks of calls that several attentions share.
#include "heed/attention/base/call_checks.h"

#include <cmath>

namespace heed {

double attention_scale(double scale, int64_t d) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d));
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
