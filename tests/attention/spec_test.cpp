// Tests attention/spec.h, attention/variant.h: specs, and attentions made from them.
#include "heed/attention/spec.h"

#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

std::string error_of(const std::string& spec) {
  try {
    attention_factory(spec);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("spec: name and options in the order written") {
  const Spec plain = parse_spec("linear");
  CHECK(plain.name == "linear");
  CHECK(plain.options.empty());
  const Spec full = parse_spec("band:width=8,mode=a=b,empty=");
  CHECK(full.name == "band");
  REQUIRE(full.options.size() == 3);
  CHECK(full.options[0] == std::pair<std::string, std::string>("width", "8"));
  CHECK(full.options[1] == std::pair<std::string, std::string>("mode", "a=b"));
  CHECK(full.options[2].second.empty());
  CHECK(to_string(full) == "band:width=8,mode=a=b,empty=");
  CHECK(to_string(plain) == "linear");
}

TEST_CASE("spec: text that is none is refused, with the form to write") {
  for (const char* wrong :
       {"", ":a=1", "linear:", "linear:epsilon", "linear:=3", "linear:a=1,", "linear:a=1,,b=2"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(parse_spec(wrong), containing("name:key=value"));
  }
  CHECK_THROWS_WITH(parse_spec("linear:a=1,a=2"), containing("a is given twice"));
}

TEST_CASE("registry: a wrong spec fails at once, with the nearest name") {
  CHECK_THAT(error_of("liner"),
             containing("attention 'liner' is unknown. Did you mean 'linear'? heed list attention"));
  CHECK_THAT(error_of("nothing like it"), containing("is unknown") && containing("softmax"));
  CHECK_THAT(error_of("linear:epsilo=1"),
             containing("attention 'linear'") && containing("Did you mean 'epsilon'?"));
  CHECK_THAT(error_of("linear:epsilon=big"), containing("epsilon = big"));
  CHECK(error_of("additive:hidden=16,bias=false") == "none");
  CHECK_THAT(error_of("additive:hidden=-4"), containing("it takes a whole number from 0 to 65536"));
  for (const char* spec : {"linear:epsilon=0", "linear:epsilon=-1"}) {
    CAPTURE(spec);
    Rng rng(1);
    CHECK_THROWS_WITH(make_attention(spec, {.d_model = 8, .heads = 2}, rng), containing("must be"));
  }
}

TEST_CASE("registry: a full spec writes every option and reads back") {
  CHECK(full_spec("linear") == "linear:epsilon=1e-06");
  CHECK(full_spec("additive:bias=false") == "additive:hidden=0,bias=false,project_keys=true,scale=1");
  for (const Variant& variant : variants()) {
    const std::string once = full_spec(variant.traits.name);
    CHECK(full_spec(once) == once);
    CHECK(parse_spec(once).name == variant.traits.name);
    CHECK(&variant_named(variant.traits.name) == &variant);
  }
}

TEST_CASE("registry: hosts are refused what traits deny") {
  Variant shy = variant_named("softmax");
  shy.traits.causal = shy.traits.cross = false;
  Rng rng(1);
  const Spec spec{"softmax", {}};
  CHECK_NOTHROW(make_attention(shy, spec, {.d_model = 4}, rng));
  CHECK_THROWS_WITH(make_attention(shy, spec, {.d_model = 4, .causal = true}, rng),
                    containing("'softmax' cannot look back only"));
  CHECK_THROWS_WITH(make_attention(shy, spec, {.d_model = 4, .cross = true}, rng),
                    containing("'softmax' needs queries and keys from one input"));
}

TEST_CASE("registry: names are unique and every promise is said") {
  std::vector<std::string> seen;
  for (const Variant& variant : variants()) {
    const Traits& t = variant.traits;
    CAPTURE(t.name);
    CHECK(std::count(seen.begin(), seen.end(), t.name) == 0);
    seen.emplace_back(t.name);
    CHECK(std::string(t.summary).size() > 10);
    CHECK(std::string(t.paper).size() > 5);
    CHECK(t.time.length > 0);
    CHECK(t.memory.length > 0);
    for (const OptionText& option : variant.options({t.name, {}})) CHECK_FALSE(option.help.empty());
  }
}

}  // namespace heed
