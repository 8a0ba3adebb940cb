// tests attention/spec.h, attention/variant.h
#include "heed/attention/spec.h"

#include "heed/attention/variant.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

struct Inner {
  double rate = 0.5;
  enum class Kind { hat, box } kind = Kind::hat;
  void fields(Fields& f) {
    f("rate", rate, "how fast");
    f("kind", Choice(kind, {"hat", "box"}), "what shape");
  }
};

struct Options {
  int64_t count = 3;
  bool loud = true;
  std::string word = "so";
  Inner inner;
  int64_t last = 1;
  void fields(Fields& f) {
    f("count", count, "how many");
    f("loud", loud, "shout");
    f("word", word, "what to say");
    f("inner", inner);
    f("last", last, {1, 12}, "the end");
  }
};

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

TEST_CASE("spec: the nearest word within two edits") {
  const std::vector<std::string> known{"softmax", "linear", "additive"};
  CHECK(nearest("liner", known) == "linear");
  CHECK(nearest("sofxa", known).empty());
  CHECK(nearest("sofmxa", known) == "softmax");  // a letter left out and two exchanged
  CHECK(nearest("SoftMax", known) == "softmax");
  CHECK(nearest("softmx", known) == "softmax");
  CHECK(nearest("aditive", known) == "additive");
  CHECK(nearest("performer", known).empty());
  CHECK(nearest("", known).empty());
  const std::vector<std::string> brief{"dot", "gelu", "sigmoid"};
  CHECK(nearest("foo", brief).empty());  // two letters of three
  CHECK(nearest("dt", brief) == "dot");
  CHECK(nearest("glue", brief).empty());
  CHECK(nearest("gleu", brief) == "gelu");
  CHECK(nearest("sgmiod", brief) == "sigmoid");
  CHECK(suggestion("liner", known) == " Did you mean 'linear'? Known: softmax, linear, additive.");
  CHECK(suggestion("zzz", known) == " Known: softmax, linear, additive.");
  CHECK(suggestion("zzz", std::vector<std::string>{"gelu", "gelu, back"}) == " Known: gelu; gelu, back.");
  std::vector<std::string> many{"train.learning_rate", "train.seed", "model.d_model"};
  for (int i = 0; i < 40; ++i) many.push_back("train.x" + std::to_string(i));
  CHECK(suggestion("zzz", many) == " There are 43, which begin with: train, model.");
  many = {"dropout 0.2", "dropout 0.5", "AdamW of 0.8M, once"};
  for (int i = 3; i < 43; ++i) many.push_back("op " + std::to_string(i));
  CHECK_THAT(suggestion("zzz", many),
             containing("There are 43: dropout 0.2; dropout 0.5; AdamW of 0.8M, once; op 3; "));
}

TEST_CASE("spec: options of every kind, in groups") {
  Options options;
  const std::vector<OptionText> listed = options_of(options);
  REQUIRE(listed.size() == 6);
  CHECK(listed[0].name == "count");
  CHECK(listed[0].value == "3");
  CHECK(listed[0].kind == "integer");
  CHECK(listed[0].help == "how many");
  CHECK(listed[1].kind == "true or false");
  CHECK(listed[3].name == "inner.rate");
  CHECK(listed[4].name == "inner.kind");
  CHECK(listed[4].kind == "hat|box");
  CHECK(listed[4].value == "hat");
  CHECK(listed[5].name == "last");
  CHECK(takes(listed[0]) == "integer");
  CHECK(takes(listed[5]) == "integer from 1 to 12");

  set_option(options, "count", "-12", "");
  set_option(options, "loud", "false", "");
  set_option(options, "word", "a, b", "");
  set_option(options, "inner.rate", "1e-5", "");
  set_option(options, "inner.kind", "box", "");
  CHECK(options.count == -12);
  CHECK_FALSE(options.loud);
  CHECK(options.word == "a, b");
  CHECK(options.inner.rate == 1e-5);
  CHECK(options.inner.kind == Inner::Kind::box);
  CHECK(options.last == 1);
  for (const OptionText& option : options_of(options)) set_option(options, option.name, option.value, "");
  CHECK(options.inner.rate == 1e-5);
}

TEST_CASE("spec: wrong options name the value, the place and the legal ones") {
  Options options;
  const auto wrong = [&](const char* name, const char* value) {
    try {
      set_option(options, name, value, "here: ");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(wrong("cuont", "1"), containing("here: option 'cuont' is unknown. Did you mean 'count'?"));
  CHECK_THAT(wrong("rate", "1"), containing("Known: count, loud, word, inner.rate, inner.kind, last"));
  CHECK_THAT(wrong("count", "three"),
             containing("here: count = three is not legal; it takes a whole number"));
  CHECK_THAT(wrong("count", "1.5"), containing("a whole number"));
  CHECK_THAT(wrong("count", "99999999999999999999"), containing("a whole number"));
  CHECK_THAT(wrong("count", "1000000001"), containing("a whole number from -1000000000 to 1000000000"));
  CHECK_THAT(wrong("count", "-9223372036854775808"), containing("from -1000000000 to"));
  CHECK_THAT(wrong("count", ""), containing("count = ''"));
  for (const char* value : {"0", "13", "-9223372036854775808", "1.5", "", "99999999999999999999"})
    CHECK_THAT(wrong("last", value), containing("is not legal; it takes a whole number from 1 to 12."));
  CHECK(options.last == 1);
  CHECK(wrong("last", "12") == "none");
  CHECK_THAT(wrong("inner.rate", "0.5x"), containing("a number"));
  CHECK_THAT(wrong("inner.rate", "nan"), containing("a finite number"));
  CHECK_THAT(wrong("inner.rate", "inf"), containing("a finite number"));
  CHECK_THAT(wrong("loud", "yes"), containing("true or false"));
  CHECK_THAT(wrong("inner.kind", "bax"),
             containing("inner.kind = 'bax' is unknown. Did you mean 'box'? Known: hat, box."));
  NoOptions nothing;
  CHECK_THROWS_WITH(set_option(nothing, "a", "1", "there: "), containing("there are no options here"));
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
