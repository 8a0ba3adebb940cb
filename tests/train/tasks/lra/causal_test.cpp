// Tasks over long sequences with data.causal: no token attends to later ones.
#include "heed/attention/variant.h"
#include "heed/autograd/node.h"
#include "heed/nn/encoder_models.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/small_presets.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Config loaded(const Settings& settings) {
  Config config = small_preset("lra-listops");
  for (const auto& [key, value] : settings) config.set(key, value, "");
  config.check();
  config.task->load(config, {}, [](const std::string&) {});
  return config;
}

std::string refused(const Settings& settings) {
  try {
    loaded(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The greatest weight, in all maps of an example, of a key after its query.
float later_weight(const std::string& attention, const std::string& causal) {
  Config config = loaded({{"attention.encoder", attention}, {"data.causal", causal}});
  Rng rng(1);
  const auto model = config.task->model(config, rng);
  std::string caption;
  float greatest = 0;
  for (const MapView& map : map_provider(*config.task).maps(*model, "0", caption)) {
    for (int64_t h = 0; h < map.heads; ++h) {
      for (int64_t q = 0; q < map.queries; ++q) {
        for (int64_t k = q + 1; k < map.keys; ++k) greatest = std::max(greatest, std::abs(map.at(h, q, k)));
      }
    }
  }
  return greatest;
}

}  // namespace

TEST_CASE("lra: a causal encoder gives no weight to later tokens") {
  CHECK(later_weight("softmax", "false") > 1e-3F);
  for (const char* attention : {"softmax", "fastmax:p=1", "delta"}) {
    CAPTURE(attention);
    CHECK(later_weight(attention, "true") == 0);
  }
}

TEST_CASE("lra: attentions that only look back classify with data.causal, and are refused without") {
  int64_t found = 0;
  for (const Variant& variant : variants()) {
    if (variant.traits.bidirectional) continue;
    ++found;
    const std::string name = variant.traits.name;
    CAPTURE(name);
    CHECK_THAT(refused({{"attention.encoder", name}}), containing("'" + name + "' looks back only"));
    CHECK_THAT(refused({{"attention.encoder", "softmax;1=" + name}}), containing("--causal true"));
    Config config = loaded({{"attention.encoder", name}, {"data.causal", "true"}, {"model.pool", "last"}});
    Rng rng(1);
    const auto model = config.task->model(config, rng);
    config.task->plan(0);
    const Tensor loss = config.task->loss(*model, config.task->batch(0), {});
    backward(loss);
    for (const Named& named : parameters(*model)) {
      CAPTURE(named.name);
      CHECK(grad_of(*named.tensor));
    }
  }
  CHECK(found >= 5);  // lstmn, retention, gla, delta, ssd
}

TEST_CASE("lra: what does not go with data.causal is refused") {
  CHECK_THAT(refused({{"data.causal", "true"}, {"model.pool", "first"}}), containing("model.pool = first"));
  CHECK_THAT(refused({{"data.causal", "true"}, {"data.predict", "masked"}}),
             containing("train.pretrain = causal"));
  CHECK_THAT(refused({{"data.causal", "true"}, {"attention.encoder", "softmax;1=linformer"}}),
             containing("'linformer' cannot look back only, which data.causal = true asks for"));
  CHECK(refused({{"attention.encoder", "delta"}, {"data.predict", "causal"}}) == "no error");
}
