// Writes the polynomial of an attention, and the names by which Transformers finds its code.
#include "heed/train/run/huggingface_code.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/attention/layered_spec.h"
#include "heed/attention/spec.h"
#include "heed/attention/variant.h"
#include "heed/core/io/embedded_files.h"
#include "heed/core/io/number_text.h"

namespace heed {
namespace {

constexpr const char* code_file = "modeling_heed.py";

/// The options of a spec with their values.
using Options = std::map<std::string, std::string>;

double number_of(const Options& options, const char* name) { return parsed_number(options.at(name)).value(); }

Json polynomial(const char* map, Json::List coefficients, double scale, double epsilon) {
  return Json::object(
      {{"map", map}, {"coefficients", std::move(coefficients)}, {"scale", scale}, {"epsilon", epsilon}});
}

std::optional<Json> fastmax_settings(const Options& options, int64_t head_dim) {
  const std::string normalise = options.at("normalise");
  if (options.at("guard") != "false" || (normalise != "std" && normalise != "none")) return std::nullopt;
  const double given[] = {number_of(options, "a0"), number_of(options, "a1"), number_of(options, "a2")};
  const auto degree = static_cast<int64_t>(number_of(options, "p"));
  Json::List coefficients;
  double factorial = 1;
  for (int64_t l = 0; l <= degree; ++l) {
    factorial *= static_cast<double>(std::max<int64_t>(l, 1));
    coefficients.push_back(l < 3 ? given[l] : 1 / factorial);
  }
  double scale = number_of(options, "score_scale");
  if (normalise == "none")
    scale /= number_of(options, "denum_term") * std::sqrt(static_cast<double>(head_dim));
  return polynomial(normalise == "std" ? "standard" : "none", std::move(coefficients), scale,
                    number_of(options, "epsilon"));
}

}  // namespace

std::optional<Json> polynomial_settings(const std::string& spec, int64_t head_dim) {
  if (parse_layered_spec(spec).all().size() != 1) return std::nullopt;
  const Spec all = parse_spec(full_spec(spec));
  const Options options(all.options.begin(), all.options.end());
  if (all.name == "linear") return polynomial("positive", Json::List{0, 1}, 1, number_of(options, "epsilon"));
  return all.name == "fastmax" ? fastmax_settings(options, head_dim) : std::nullopt;
}

NamedBytes add_attention_code(Json& config, Json attention) {
  const bool is_llama = config.at("model_type").text() == "llama";
  const std::string prefix = is_llama ? "HeedLlama" : "HeedGpt2", module = "modeling_heed.",
                    model = prefix + "ForCausalLM";
  config.set("architectures", Json::List{model});
  config.set("model_type", is_llama ? "heed_llama" : "heed_gpt2");
  config.set("auto_map", Json::object({{"AutoConfig", module + prefix + "Config"},
                                       {"AutoModelForCausalLM", module + model}}));
  config.set("heed_attention", std::move(attention));
  return {code_file, std::string(embedded_file(text("train/run/", code_file)))};
}

}  // namespace heed
