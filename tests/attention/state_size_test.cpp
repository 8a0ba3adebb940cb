// The state that attentions keep while text is generated.
#include "heed/attention/state_size.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("state size: keys and values for softmax, sums for linear attentions") {
  const AttentionConfig config{.d_model = 32, .heads = 2, .max_length = 64};
  constexpr double d = 16;
  for (const int64_t length : {1, 7, 40}) {
    CAPTURE(length);
    const double cache = 2 * d * static_cast<double>(length);
    CHECK(state_size("softmax", config, length) == cache);
    CHECK(state_size("window:left=3,right=0", config, length) == std::min(cache, 2 * d * 4));
    CHECK(state_size("linear", config, length) == d * d + d);
    CHECK(state_size("retention", config, length) == d * d);
    CHECK(state_size("fastmax:p=1", config, length) == (d + 1) * (d + 1));
  }
}

TEST_CASE("state size: shared heads, layers in turn, and attentions without one") {
  AttentionConfig config{.d_model = 32, .heads = 4, .kv_heads = 2, .max_length = 64, .layers = 2};
  CHECK(state_size("softmax", config, 10) == 2.0 * 8 * 10 / 2);
  config.kv_heads = 0;
  CHECK(state_size("linear,softmax", config, 10) == (8.0 * 8 + 8 + 2 * 8 * 10) / 2);
  CHECK(state_size("skyformer", config, 10) == std::nullopt);
  CHECK_THROWS_WITH(state_size("softmaxx", config, 10), Catch::Contains("softmax"));
}
