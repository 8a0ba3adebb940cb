// Writes and reads the files of the checkpoint of a training loop: model.safetensors, optim.safetensors and
// loop.json.
#include "heed/train/run/own_loop_checkpoint.h"

#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/random.h"

namespace heed {
namespace {

constexpr int64_t max_steps = int64_t{1} << 40;

/// Reads a whole number from 0 to `max_value`.
int64_t read_integer(const Json& json, const char* key, int64_t max_value) {
  const Json& value = json.at(key);
  if (!value.is_integer() || value.integer() < 0 || value.integer() > max_value)
    fail(Fault::data, key, " is ", shown(value.dump()), ". It must be a whole number from 0 to ", max_value,
         ".");
  return value.integer();
}

/// The object in loop.json of a part of the TrainingState, loader or rng. Fails where it was not saved.
const Json& part_of(const Json& json, const char* part) {
  const Json* found = json.find(part);
  if (found == nullptr)
    fail(Fault::data, "it has no ", part, ", which this loop asks for. Save it too: TrainingState::", part,
         ".");
  return *found;
}

}  // namespace

void save_checkpoint(const Path& folder, const TrainingState& state, int64_t keep) {
  if (state.step < 0 || keep < 1)
    fail("save_checkpoint: step = ", state.step, ", keep = ", keep, ". They must be at least 0 and 1.");
  Json json = Json::object({{"step", state.step}});
  std::vector<NamedBytes> files;
  {
    std::optional<AveragedWeights> averaged;
    if (state.optimizer != nullptr) averaged.emplace(*state.optimizer);
    files.push_back({"model.safetensors", save_bytes(state.model)});
  }
  if (state.optimizer != nullptr) files.push_back({"optim.safetensors", state.optimizer->save()});
  if (state.loader != nullptr) {
    const LoaderPosition position = state.loader->position();
    json.set("loader", Json::object({{"epoch", position.epoch},
                                     {"batch", position.batch},
                                     {"description", state.loader->description()}}));
  }
  if (state.rng != nullptr)
    json.set("rng", Json::object({{"tick", state.rng->tick()}, {"draws", state.rng->draws()}}));
  files.push_back({"loop.json", json.dump(1) + "\n"});
  io::make_directories(folder);
  write_checkpoint(folder, state.step, files);
  prune_checkpoints(folder, keep, best_step(folder));
}

bool load_checkpoint(const Path& folder, TrainingState& state, std::string_view which) {
  if (list_checkpoints(folder).empty()) return false;
  const Checkpoint checkpoint = open_checkpoint(folder, which);
  const std::string name = (checkpoint.folder / "loop.json").string();
  const Json json = parse_json(checkpoint.file("loop.json"), name);
  LoaderPosition position;
  int64_t tick = 0, draws = 0;
  try {
    if (state.loader != nullptr) {
      const Json& loader = part_of(json, "loader");
      position = {.epoch = read_integer(loader, "epoch", max_steps),
                  .batch = read_integer(loader, "batch", state.loader->batches() - 1)};
      const std::string& saved = loader.at("description").text();
      const std::string present = state.loader->description();
      if (saved != present)
        fail(Fault::data, "it was saved with ", shown(saved, 200), ", and the loader has ", present,
             ". Give it the same data and options.");
    }
    if (state.rng != nullptr) {
      const Json& rng = part_of(json, "rng");
      tick = read_integer(rng, "tick", max_steps);
      draws = read_integer(rng, "draws", max_draws);
    }
    read_integer(json, "step", max_steps);  // only checked: the checkpoint has the number
  } catch (const Error& error) {
    fail(error.fault(), name, ": ", error.what());
  }
  load_bytes(state.model, checkpoint.file("model.safetensors"),
             (checkpoint.folder / "model.safetensors").string());
  if (state.optimizer != nullptr) state.optimizer->load(checkpoint.file("optim.safetensors"));
  if (state.loader != nullptr) state.loader->seek(position);
  if (state.rng != nullptr) state.rng->restore(tick, draws);
  state.step = checkpoint.step;
  return true;
}

}  // namespace heed
