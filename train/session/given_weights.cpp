// Puts the weights of another run into a new model, and says what was done.
#include "heed/train/session/given_weights.h"

#include "heed/nn/weight_transfer.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/run/initial_weights.h"

namespace heed {

Json use_given_weights(const Checkpoint& initial, Module& model, Progress& progress) {
  const WeightTransfer transfer = transfer_weights(model, initial.file("model.safetensors"),
                                                   (initial.folder / "model.safetensors").string());
  Json facts = origin_metadata(initial);
  progress.say("weights", text("of ", facts.at("run").text(), ", step ", initial.step));
  for (const std::string& line : transfer_words(transfer)) progress.say("", line);
  const auto list = [&](const char* key, const std::vector<std::string>& names) {
    std::vector<Json> words;
    for (const std::string& name : names) words.emplace_back(name);
    facts.set(key, std::move(words));
  };
  list("initialised", transfer.initialised);
  list("left_out", transfer.unused);
  return facts;
}

}  // namespace heed
