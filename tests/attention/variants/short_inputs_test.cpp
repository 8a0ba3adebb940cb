// A loss depends on all parameters of an attention however short its input is: a training run refuses a model
// of which it does not, and with batches of like length the first one may be of single words.
#include "heed/attention/variant.h"
#include "heed/nn/module.h"
#include "heed/tests/catch.h"
#include "heed/tests/core/kernels/attention_reference.h"

namespace heed {
namespace {

void reaches_all_parameters(const std::string& spec) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    for (const int64_t length : {1, 2, 3}) {
      CAPTURE(spec, seed, length);
      Rng rng(seed);
      const auto attention = make_attention(spec, {.d_model = 8, .heads = 2, .max_length = 64}, rng);
      const Tensor x = reshape(test::heads(2, 1, length, 8, DType::f32, 1), Shape{2, length, 8});
      CHECK_NOTHROW(check_listed(*attention, sum(attention->forward({.queries = x, .keys = x}))));
    }
  }
}

}  // namespace

TEST_CASE("short inputs: single words reach all parameters of every variant") {
  for (const Variant& variant : variants()) {
    if (variant.traits.bidirectional) reaches_all_parameters(variant.traits.name);
  }
}

TEST_CASE("short inputs: so they do where a random place holds a parameter", "[structured]") {
  for (const char* start : {"band", "diagonal", "uniform"})
    reaches_all_parameters(std::string("structured:width=3,eps=0.1,start=") + start);
}

}  // namespace heed
