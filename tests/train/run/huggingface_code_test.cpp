// tests train/run/huggingface_code.h
#include "heed/train/run/huggingface_code.h"

#include "heed/tests/catch.h"

namespace heed {

TEST_CASE("huggingface code: attentions that are a polynomial of scores have settings, others have none") {
  const auto settings = [](const char* spec) {
    return polynomial_settings(spec, 16).value_or(Json()).dump();
  };
  CHECK(settings("linear:epsilon=0.5") ==
        R"({"map": "positive", "coefficients": [0, 1], "scale": 1.0, "epsilon": 0.5})");
  CHECK(settings("fastmax:p=4,epsilon=0.25") ==
        R"({"map": "standard", "coefficients": [1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664], )"
        R"("scale": 1.0, "epsilon": 0.25})");
  CHECK(settings("fastmax:p=1,a1=3,normalise=none,denum_term=2,score_scale=4") ==
        R"({"map": "none", "coefficients": [1.0, 3.0], "scale": 0.5, "epsilon": 0.0})");  // 4 / (2 sqrt(16))
  for (const char* spec : {"softmax", "fastmax:normalise=l2", "fastmax:normalise=maxnorm",
                           "fastmax:guard=true", "retention", "linear,fastmax", "window:left=3,right=0"}) {
    CAPTURE(spec);
    CHECK(settings(spec) == "null");
  }
}

TEST_CASE("huggingface code: config.json names the classes of modeling_heed.py") {
  for (const auto& [type, prefix] : {std::pair{"llama", "HeedLlama"}, std::pair{"gpt2", "HeedGpt2"}}) {
    CAPTURE(type);
    Json config = Json::object({{"model_type", type}, {"architectures", Json::List{"LlamaForCausalLM"}}});
    const NamedBytes code = add_attention_code(config, *polynomial_settings("linear", 4));
    CHECK(code.name == "modeling_heed.py");
    CHECK(config.at("model_type").text() == text("heed_", type));
    CHECK(config.at("heed_attention").at("map").text() == "positive");
    const Json& names = config.at("auto_map");
    for (const auto& [kind, ending] :
         {std::pair{"AutoConfig", "Config"}, std::pair{"AutoModelForCausalLM", "ForCausalLM"}}) {
      const std::string name = std::string(prefix) + ending;
      CHECK(names.at(kind).text() == "modeling_heed." + name);
      CHECK(code.bytes.find("class " + name + "(") != std::string::npos);
    }
    CHECK(config.at("architectures").list()[0].text() == std::string(prefix) + "ForCausalLM");
  }
}

}  // namespace heed
