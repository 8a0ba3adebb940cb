// Tests attention/layered_spec.h: attentions that differ by layer.
#include "heed/attention/layered_spec.h"

#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("layered spec: a later part wins, and layers that no part names have the base") {
  const LayeredSpec spec = parse_layered_spec("softmax;1-3,6=casinoformer:mass=edh,exponent=0.3;2=linear");
  CHECK(spec.base == "softmax");
  CHECK(spec.of(0) == "softmax");
  CHECK(spec.of(1) == "casinoformer:mass=edh,exponent=0.3");
  CHECK(spec.of(2) == "linear");
  CHECK(spec.of(3) == spec.of(1));
  CHECK(spec.of(4) == "softmax");
  CHECK(spec.of(6) == spec.of(1));
  CHECK(spec.all().size() == 4);
  CHECK(parse_layered_spec("linear:epsilon=1e-5").of(7) == "linear:epsilon=1e-5");
}

TEST_CASE("layered spec: layers are put into a text") {
  CHECK(with_layers("softmax", "linear", "") == "linear");
  CHECK(with_layers("softmax", "linear", "0,2-3") == "softmax;0,2-3=linear");
  CHECK_THROWS_WITH(with_layers("softmax", "linear;1=dot", "2"), containing("Give layers in one place"));
  CHECK_THROWS_WITH(with_layers("softmax", "linear", "some"), containing("'some' is no layer"));
}

TEST_CASE("layered spec: what is wrong is named") {
  for (const char* layers : {"", "-1", "1-", "3-x", "1,,2", "1.5"})
    CHECK_THROWS_WITH(parse_layers(layers), containing("is no layer"));
  CHECK_THROWS_WITH(parse_layers("5-4"), containing("5 is above 4"));
  CHECK_THROWS_WITH(parse_layered_spec("softmax;linear"), containing("is not LAYERS=SPEC"));
  CHECK_THROWS_WITH(parse_layered_spec("softmax;1="), containing("is not LAYERS=SPEC"));
  CHECK_THROWS_WITH(check_attention("softmax;1=linaer"), containing("Did you mean 'linear'?"));
  CHECK_THROWS_WITH(check_attention("softmax;1=linear:no=1"), containing("no"));
  check_attention("softmax;0-9=linear");
}

TEST_CASE("layered spec: a factory makes each layer its attention, and refuses layers that are not there") {
  const AttentionFactory make = attention_factory("softmax;1=linear");
  Rng rng(1);
  const auto kind = [&](int64_t layer) {
    const auto made = make({.d_model = 8, .heads = 2, .causal = true, .layer = layer, .layers = 2}, rng);
    const auto plain = make_attention(layer == 1 ? "linear" : "softmax",
                                      {.d_model = 8, .heads = 2, .causal = true, .layers = 2}, rng);
    return typeid(*made) == typeid(*plain);
  };
  CHECK(kind(0));
  CHECK(kind(1));
  CHECK_THROWS_WITH(make({.d_model = 8, .heads = 2, .layer = 0, .layers = 1}, rng),
                    containing("the model has 1: 0 to 0"));
}
