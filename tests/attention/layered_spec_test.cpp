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

TEST_CASE("layered spec: attentions take turns over the layers") {
  using List = std::vector<std::string>;
  const auto turns = [](const char* text) { return parse_layered_spec(text).turns; };
  CHECK(turns("softmax") == List{"softmax"});
  CHECK(turns("gla*3,softmax") == List{"gla", "gla", "gla", "softmax"});
  CHECK(turns("gla,softmax*2") == List{"gla", "softmax", "softmax"});
  // Options have commas, too: a piece with '=' continues them, unless a ':' precedes it.
  CHECK(turns("gla:a=1,b=2*3,softmax") == List{"gla:a=1,b=2", "gla:a=1,b=2", "gla:a=1,b=2", "softmax"});
  CHECK(turns("gla:a=1,b=2,softmax:c=3,d=4,linear") == List{"gla:a=1,b=2", "softmax:c=3,d=4", "linear"});
  CHECK(turns("gla:a=1*2,b=2").size() == 1);  // "1*2" is a value that options follow
  CHECK(turns("softmax*1") == List{"softmax"});
  const LayeredSpec spec = parse_layered_spec("gla*3,softmax;0,7=linear");
  CHECK(spec.base == "gla*3,softmax");
  CHECK(spec.of(0) == "linear");
  CHECK(spec.of(2) == "gla");
  CHECK(spec.of(3) == "softmax");
  CHECK(spec.of(4) == "gla");
  CHECK(spec.of(7) == "linear");
  CHECK(spec.of(11) == "softmax");
  CHECK(spec.all() == List{"gla", "softmax", "linear", "linear"});
  spec.check_layers(8);
  CHECK_THROWS_WITH(parse_layered_spec("gla*3,softmax").check_layers(3),
                    containing("'gla*3,softmax' names 4 layers in turn, but the model has 3"));
  for (const char* wrong :
       {"gla*0,softmax", "gla*,softmax", "gla*-1", "gla*x", "gla*10001", "gla*9999,linear*2"})
    CHECK_THROWS_WITH(parse_layered_spec(wrong), containing("is no number of layers"));
  CHECK_THROWS_WITH(parse_layered_spec("softmax;1-4=gla,linear"), containing("more than one attention"));
  CHECK_THROWS_WITH(parse_layered_spec("softmax;1-4=gla*2"), containing("more than one attention"));
  CHECK_THROWS_WITH(check_attention("gla*3,sofmax"), containing("Did you mean 'softmax'?"));
  CHECK_THROWS_WITH(check_attention("gla,,softmax"), containing("'' has no name"));
  check_attention("gla:rank=4*3,softmax");
}

TEST_CASE("layered spec: a part whose layers are all named again is refused, and replaced by with_layers()") {
  CHECK_THROWS_WITH(parse_layered_spec("softmax;0=gla;0=linear"),
                    containing("'softmax;0=gla;0=linear': 'gla' of layer 0 has no effect, since later parts "
                               "name that, too. Name each layer once."));
  CHECK_THROWS_WITH(parse_layered_spec("softmax;1-3=gla;3=dot;0-2=linear"),
                    containing("'gla' of the layers 1 to 3 has no effect"));
  CHECK(parse_layered_spec("softmax;0-9223372036854775807=gla;2=linear").of(2) == "linear");
  CHECK_THROWS_WITH(parse_layered_spec("softmax;2=gla;0-9223372036854775807=linear"),
                    containing("no effect"));
  CHECK(with_layers("softmax;0=gla", "linear", "0") == "softmax;0=linear");
  CHECK(with_layers("softmax;0-1,4=gla", "linear", "0,1") == "softmax;4=gla;0,1=linear");
  CHECK(with_layers("softmax;0-1=gla", "linear", "0") == "softmax;0-1=gla;0=linear");
}

TEST_CASE("layered spec: blanks around its words are left out") {
  using List = std::vector<std::string>;
  CHECK(parse_layered_spec("gla *3, softmax").turns == List{"gla", "gla", "gla", "softmax"});
  CHECK(parse_layered_spec(" gla* 2 ,softmax ; 0, 2 = linear ").of(2) == "linear");
  CHECK(parse_layered_spec("gla:rank=4, scale=1 , softmax").turns == List{"gla:rank=4,scale=1", "softmax"});
  CHECK(parse_layers("1 - 2, 5").size() == 2);
  check_attention("linear: epsilon = 1e-5");
}

TEST_CASE("layered spec: parentheses, which only lists of several attentions have, are refused") {
  for (const char* text : {"(gla*3,softmax)", "(gla*3),softmax", "gla*3,(softmax)"})
    CHECK_THROWS_WITH(check_attention(text),
                      containing("parentheses are for lists, as in heed compare. Write gla*3,softmax."));
  CHECK_THROWS_WITH(check_attention("softmax;0=(gla)"), containing("Write softmax;0=gla."));
}

TEST_CASE("layered spec: a list is cut at specs, but not within parentheses") {
  using List = std::vector<std::string>;
  CHECK(split_spec_list("a:x=1,y=2,b") == List{"a:x=1,y=2", "b"});
  CHECK(split_spec_list("(a:x=1,y=2*3,b),c,(d)") == List{"(a:x=1,y=2*3,b)", "c", "(d)"});
  CHECK(split_spec_list("a;1=b:x=1,y=2,c") == List{"a;1=b:x=1,y=2", "c"});
}

TEST_CASE("layered spec: layers are put into a text") {
  CHECK(with_layers("softmax", "linear", "") == "linear");
  CHECK(with_layers("softmax", "linear", "0,2-3") == "softmax;0,2-3=linear");
  CHECK_THROWS_WITH(with_layers("softmax", "linear;1=dot", "2"), containing("Give layers in one place"));
  CHECK_THROWS_WITH(with_layers("softmax", "linear*2,dot", "2"), containing("Give layers in one place"));
  CHECK(with_layers("softmax", "linear*2,dot", "") == "linear*2,dot");
  CHECK(parse_layered_spec(with_layers("linear*2,dot", "softmax", "1")).of(1) == "softmax");
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
  const AttentionFactory in_turn = attention_factory("linear*2,softmax");
  for (int64_t layer = 0; layer < 6; ++layer) {
    const AttentionConfig config{.d_model = 8, .heads = 2, .layer = layer, .layers = 6};
    CHECK(typeid(*in_turn(config, rng)) ==
          typeid(*make_attention(layer % 3 == 2 ? "softmax" : "linear", config, rng)));
  }
  CHECK_THROWS_WITH(in_turn({.d_model = 8, .heads = 2, .layers = 2}, rng), containing("3 layers in turn"));
}
