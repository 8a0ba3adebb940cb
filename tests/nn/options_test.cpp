// Tests nn/options.h: one list of options serves every visitor.
#include "heed/nn/options.h"

#include "heed/nn/linear.h"
#include "heed/nn/transformer.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

/// Every option by its full name, as "kind value"; and that it has a help text.
struct Lister final : Fields {
  std::vector<std::pair<std::string, std::string>> found;
  std::string group;
  bool helped = true;

  std::string of(const std::string& name) const {
    for (const auto& [known, value] : found) {
      if (known == name) return value;
    }
    return "";
  }

 protected:
  template <class... Parts>
  void add(const char* name, const char* help, const Parts&... parts) {
    helped = helped && std::string(help).size() > 3;
    found.emplace_back(group + name, text(parts...));
  }
  void on(const char* name, int64_t& value, const char* help) override { add(name, help, "integer ", value); }
  void on(const char* name, double& value, const char* help) override { add(name, help, "number ", value); }
  void on(const char* name, std::optional<double>& value, const Followed& followed,
          const char* help) override {
    add(name, help, "number ", value.value_or(followed.value));
  }
  void on(const char* name, bool& value, const char* help) override { add(name, help, "truth ", value); }
  void on(const char* name, std::string& value, const char* help) override {
    add(name, help, "text ", value);
  }
  void on(const char* name, Choice& value, const char* help) override {
    add(name, help, "word ", value.word());
  }
  void on(const char* name, WordSet& value, const char* help) override {
    add(name, help, "words ", value.text());
  }
  void enter(const char* name) override { group += std::string(name) + "."; }
  void leave() override { group.clear(); }
};

/// Sets each kind of option.
struct Setter final : Fields {
 protected:
  void on(const char*, int64_t& value, const char*) override { value = 7; }
  void on(const char*, double& value, const char*) override { value = 0.5; }
  void on(const char*, bool& value, const char*) override { value = !value; }
  void on(const char*, Choice& value, const char*) override { value.choose(value.words().back()); }
};

struct Inner {
  std::string path = "here";
  void fields(Fields& f) { f("path", path, "where it lies"); }
};

struct Outer {
  int64_t count = 3;
  Inner inner;
  void fields(Fields& f) {
    f("count", count, "how many");
    f("inner", inner);
  }
};

}  // namespace

TEST_CASE("fields: the options of a model, by name, kind and value") {
  TransformerConfig config;
  config.d_model = 48;
  config.dropout = 0.25;
  Lister list;
  config.fields(list);
  CHECK(list.of("d_model") == "integer 48");
  CHECK(list.of("dropout") == "number 0.25");
  CHECK(list.of("attention_dropout") == "number 0.25");  // follows
  CHECK(list.of("norm") == text("word ", config.norm == NormPlace::pre ? "pre" : "post"));
  CHECK(list.of("norm_bias") == text("truth ", config.norm_bias));
  CHECK(list.of("attention_bias") == "words false");
  CHECK(list.of("length").empty());
  CHECK(list.of("head_dim") == text("integer ", config.head_dim));
  CHECK(list.of("position_deviation") == text("number ", config.position_deviation));
  CHECK(list.found.size() == 35);
  CHECK(list.helped);
}

TEST_CASE("fields: a visitor sets what it visits") {
  TransformerConfig config;
  const bool bias = config.output_bias;
  Setter setter;
  config.fields(setter);
  CHECK(config.d_model == 7);
  CHECK(config.norm_epsilon == 0.5);
  CHECK(config.output_bias != bias);
  Lister list;
  config.fields(list);
  CHECK(list.of("activation") == "word geglu");
  // the last word of each
  CHECK(list.of("position") == "word shaw_keys");
  CHECK(list.of("init") == "word xavier_fan_in");
  CHECK(list.of("tie_embeddings") == "word all");
}

TEST_CASE("fields: groups are named, and kinds that a visitor does not care for pass it by") {
  Outer outer;
  Lister list;
  outer.fields(list);
  CHECK(list.of("count") == "integer 3");
  CHECK(list.of("inner.path") == "text here");
  Setter setter;  // has no word on texts and groups
  outer.fields(setter);
  CHECK(outer.count == 7);
  CHECK(outer.inner.path == "here");
  Fields none;
  TransformerConfig config;
  config.fields(none);
  outer.fields(none);
  Rng rng(1);
  Linear linear(2, 3, rng);
  linear.fields(none);
  CHECK(outer.count == 7);
  CHECK(config.d_model == TransformerConfig{}.d_model);
}

TEST_CASE("fields: a choice takes its words and no others") {
  enum class Fruit { apple, pear };
  Fruit fruit = Fruit::apple;
  Choice choice(fruit, {"apple", "pear"});
  CHECK(std::string(choice.word()) == "apple");
  CHECK(choice.choose("pear"));
  CHECK(fruit == Fruit::pear);
  CHECK_FALSE(choice.choose("plum"));
  CHECK_FALSE(choice.choose(""));
  CHECK(std::string(choice.word()) == "pear");
}

}  // namespace heed
