// Settings of a model's blocks in config.toml: written, read again, and refused.
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"

using namespace heed;

namespace {

std::string line_of(Config& config, const std::string& key) {
  const std::string toml = to_toml(config);
  const size_t begin = toml.find("\n" + key + " = ") + 1;
  return toml.substr(begin, toml.find("  #", begin) - begin);
}

std::string trimmed(std::string line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

}  // namespace

TEST_CASE("block settings: what config.toml has of them is read as it was written") {
  for (const auto& [key, value, written] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"model.attention_bias", "true", "attention_bias = true"},
           {"model.attention_bias", "false", "attention_bias = false"},
           {"model.attention_bias", "value,query", "attention_bias = \"query,value\""},
           {"model.norm_scale", "rms", "norm_scale = \"rms\""},
           {"model.activation", "swiglu", "activation = \"swiglu\""},
           {"model.activation", "geglu", "activation = \"geglu\""},
           {"model.logit_scale", "0.25", "logit_scale = 0.25"},
           {"model.short_convolution", "4", "short_convolution = 4"},
           {"attention.decoder", "gla:rank=4*3,softmax;7=linear",
            "decoder = \"gla:rank=4*3,softmax;7=linear\""}}) {
    CAPTURE(key, value);
    Config config = make_config("lm");
    config.set(key, value, "");
    const std::string name = key.substr(key.find('.') + 1);
    CHECK(trimmed(line_of(config, name)) == written);
    Config again = read_config(to_toml(config), "config.toml");
    CHECK(to_toml(again) == to_toml(config));
    again.check();
  }
}

TEST_CASE("block settings: a run of an earlier version has none of them") {
  const Config config = read_config("task = \"lm\"\n[model]\nattention_bias = true\n", "config.toml");
  CHECK(config.model.attention_bias);
  CHECK(config.model.logit_scale == 1);
  CHECK(config.model.short_convolution == 0);
}

TEST_CASE("block settings: what is wrong is named with its place") {
  const auto parsed = [](const std::string& line) {
    return parse_config("preset = \"lm\"\n" + line, "my.toml");
  };
  CHECK_THROWS_WITH(parsed("[model]\nattention_bias = \"query,vaule\"\n"),
                    containing("my.toml:3:") && containing("'vaule' is unknown. Did you mean 'value'?"));
  CHECK_THROWS_WITH(parsed("[model]\nshort_convolution = 17\n"), containing("a whole number from 0 to 16"));
  CHECK_THROWS_WITH(parsed("[model]\nlogit_scale = 0.0\n").check(),
                    containing("my.toml:3:") && containing("model.logit_scale = 0. It must be above 0"));
  CHECK_THROWS_WITH(parsed("[attention]\ndecoder = \"gla*3,sofmax\"\n").check(),
                    containing("attention.decoder: ") && containing("Did you mean 'softmax'?"));
}
