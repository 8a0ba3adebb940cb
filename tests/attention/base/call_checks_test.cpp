// Tests the common check of calls, through every attention's forward(), and the sizes that constructors
// refuse.
#include "heed/attention/base/call_checks.h"

#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using Catch::Matchers::StartsWith;

Tensor normal(const Shape& shape) {
  Rng rng(1);
  const Tensor x(shape);
  fill_normal(x, 0, 1, rng);
  return x;
}

std::unique_ptr<Attention> made(const std::string& spec, const AttentionConfig& given = {}) {
  Rng rng(1);
  AttentionConfig config = given;
  config.d_model = 8;
  config.heads = 2;
  config.max_length = 16;
  return make_attention(spec, config, rng);
}

TEST_CASE("call checks: an attention without a causal form refuses a causal mask") {
  const Tensor x = normal(Shape{2, 5, 8});
  int refusing = 0;
  for (const Variant& variant : variants()) {
    if (variant.traits.causal) continue;
    ++refusing;
    const std::string name = variant.traits.name;
    const auto attention = made(name);
    CHECK_THROWS_WITH(attention->forward({.queries = x, .keys = x, .mask = Mask::causal()}),
                      StartsWith(text("attention '", name, "': it cannot follow Mask::causal(): ")));
    CHECK_NOTHROW(attention->forward({.queries = x, .keys = x}));
  }
  CHECK(refusing >= 5);
}

TEST_CASE("call checks: a causal attention refuses several queries without a causal mask") {
  const Tensor x = normal(Shape{2, 5, 8});
  for (const Variant& variant : variants()) {
    if (!variant.traits.causal) continue;
    CAPTURE(variant.traits.name);
    const auto attention = made(variant.traits.name, {.causal = true});
    CHECK_THROWS_WITH(attention->forward({.queries = x, .keys = x}),
                      containing("this call has 5 queries and no causal mask"));
    CHECK_NOTHROW(attention->forward({.queries = x, .keys = x, .mask = Mask::causal()}));
  }
  // A single query is the last position, with a cache or without.
  const auto attention = made("softmax", {.causal = true});
  const auto cache = attention->new_cache();
  const Tensor one = slice(x, 1, 4, 5);
  CHECK_NOTHROW(attention->forward({.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()}));
  CHECK_NOTHROW(attention->forward({.queries = one, .keys = one, .cache = cache.get()}));
  CHECK_NOTHROW(attention->forward({.queries = one, .keys = x}));
  CHECK_THROWS_WITH(attention->forward({.queries = x, .keys = x, .cache = cache.get()}),
                    containing("no causal mask"));
  CHECK_NOTHROW(made("softmax", {.cross = true})->forward({.queries = x, .keys = x}));
}

TEST_CASE("call checks: inputs that are no sequences, or of another batch, are named") {
  const Tensor x = normal(Shape{2, 5, 8});
  for (const char* spec : {"softmax", "linear", "mla"}) {
    CAPTURE(spec);
    const auto attention = made(spec, {.causal = true});
    const auto complaint = [&](const Tensor& queries, const Tensor& keys) {
      try {
        attention->forward({.queries = queries, .keys = keys, .mask = Mask::causal()});
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::string who = text("attention '", spec, "': ");
    const Tensor flat = normal(Shape{5, 8}), empty = normal(Shape{2, 0, 8}), few = normal(Shape{3, 5, 8});
    CHECK_THAT(complaint(flat, flat), StartsWith(who + "queries are [5, 8]. They must be [B, T, d_model]") &&
                                          containing("reshape(x, Shape{1, 5, 8})"));
    CHECK_THAT(complaint(empty, empty), StartsWith(who + "queries are [2, 0, 8]."));
    CHECK_THAT(complaint({}, x), StartsWith(who + "queries are an empty tensor."));
    CHECK_THAT(complaint(x, empty), StartsWith(who + "keys are [2, 0, 8]."));
    CHECK_THAT(complaint(x, few),
               containing("queries [2, 5, 8] and keys [3, 5, 8] are not of the same number"));
    const auto cache = attention->new_cache();
    attention->forward({.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache.get()});
    CHECK_THROWS_WITH(
        attention->forward({.queries = few, .keys = few, .mask = Mask::causal(), .cache = cache.get()}),
        StartsWith(who + "the cache is of 2 sequences, and the call of 3. Use a new_cache()"));
  }
}

TEST_CASE("call checks: sizes that cannot be are refused when an attention is made") {
  Rng rng(1);
  for (const char* spec : {"softmax", "lstmn", "mla", "location"}) {
    CAPTURE(spec);
    const auto make = [&](AttentionConfig config) {
      config.causal = true;
      make_attention(spec, config, rng);
    };
    for (const int64_t width : {0, -4})
      CHECK_THROWS_WITH(make({.d_model = width}),
                        StartsWith(text("attention: d_model = ", width, ". It must be at least 1.")));
    for (const double rate : {2.0, 1.0, -0.1})
      CHECK_THROWS_WITH(
          make({.d_model = 8, .dropout = rate}),
          containing(text("attention: dropout = ", rate, ". It must be at least 0 and below 1.")));
    CHECK_THROWS_WITH(make({.d_model = 8, .heads = 0}), containing("0 heads"));
  }
}

}  // namespace
}  // namespace heed
