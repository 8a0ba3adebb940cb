// Tests nn/set_option.h: options as text, set by name, and the words suggested for unknown ones.
#include "heed/nn/set_option.h"

#include "heed/core/error.h"
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

struct Biases {
  bool query = false, key = false, output = false;
  void fields(Fields& f) {
    f("bias", WordSet({{"query", query}, {"key", key}, {"output", output}}), "which layers add one");
  }
};

}  // namespace

TEST_CASE("set_option: the nearest word within two edits") {
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

TEST_CASE("set_option: options of every kind, in groups") {
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

TEST_CASE("set_option: some of a few words") {
  Biases biases;
  const auto value = [&] { return options_of(biases).front().value; };
  CHECK(value() == "false");
  CHECK(options_of(biases).front().kind == "true or false, or some of query,key,output");
  set_option(biases, "bias", "output,query", "");
  CHECK(value() == "query,output");
  CHECK((biases.query && !biases.key && biases.output));
  CHECK_FALSE(is_bare_in_toml(options_of(biases).front()));
  set_option(biases, "bias", "key", "");
  CHECK(value() == "key");
  set_option(biases, "bias", "true", "");
  CHECK(value() == "true");
  CHECK(is_bare_in_toml(options_of(biases).front()));
  set_option(biases, "bias", "query,key,output", "");
  CHECK(value() == "true");
  for (const char* wrong : {"query,kye", "", "query,", "query, key", "true,query", "all"})
    CHECK_THROWS_WITH(set_option(biases, "bias", wrong, "here: "),
                      containing(text("here: bias = '", wrong, "'")) && containing("or true or false"));
  CHECK_THROWS_WITH(set_option(biases, "bias", "query,kye", ""),
                    containing("'kye' is unknown. Did you mean 'key'? Known: query, key, output."));
  CHECK(value() == "true");  // a wrong text changes nothing
  set_option(biases, "bias", "false", "");
  CHECK(value() == "false");
}

TEST_CASE("set_option: wrong options name the value, the place and the legal ones") {
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
  struct {
    void fields(Fields&) {}
  } nothing;
  CHECK_THROWS_WITH(set_option(nothing, "a", "1", "there: "), containing("there are no options here"));
}

}  // namespace heed
