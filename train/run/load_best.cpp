// Finds the checkpoint of load_best(), and says why there is none.
#include "heed/train/run/load_best.h"

#include "heed/core/io/files.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

int64_t load_best(Module& model, const Path& folder) {
  if (!io::is_directory(folder))
    fail(Fault::file, "load_best: there is no folder ", folder,
         ". Give the one that was FitOptions::folder.");
  if (list_checkpoints(folder).empty()) {
    if (!io::exists(folder / "ckpt") && !io::exists(folder / "config.toml"))
      fail(Fault::file, "load_best: ", folder,
           " is not the folder of a run: it has neither ckpt nor config.toml. Give the one that was "
           "FitOptions::folder.");
    fail(Fault::data, "load_best: the run ", folder, " has no checkpoint yet. Train it first.");
  }
  const SettingsSourceScope source(SettingsSource::fit);
  const Checkpoint checkpoint =
      open_checkpoint(folder, best_step(folder) ? "best" : "last", HeldFiles::all_but_tensors);
  load(model, checkpoint.path("model.safetensors"));
  return checkpoint.step;
}

}  // namespace heed
