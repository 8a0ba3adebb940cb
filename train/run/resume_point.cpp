// Finds the weights that a run continues with, and refuses where they are lost.
#include "heed/train/run/resume_point.h"

#include "heed/core/io/files.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/run/initial_weights.h"

namespace heed {
namespace {

const Json* known(const std::optional<Json>& manifest, const char* key) {
  const Json* value = manifest ? manifest->find(key) : nullptr;
  return value == nullptr || value->is_null() ? nullptr : value;
}

/// How it is known that a run without a checkpoint has had one; empty where it was stopped before its first.
/// Runs of earlier programs do not keep the step of their first: what has metrics may have lost it.
std::string sign_of_lost_checkpoints(const RunFolder& run, const std::optional<Json>& manifest) {
  if (known(manifest, "imported") != nullptr) return "it was imported with one";
  if (const Json* step = known(manifest, first_checkpoint_key))
    return text("its first was of step ", step->dump());
  const bool keeps_first = manifest && manifest->find(first_checkpoint_key) != nullptr;
  const bool has_metrics = io::exists(run.metrics()) && io::size(run.metrics()) > 0;
  return has_metrics && !keeps_first ? text(run.metrics().filename(), " has its steps") : "";
}

std::string begin_anew() {
  return advice(" Or begin a new run, with another --name.", " Or name another folder.");
}

}  // namespace

ResumePoint resume_point(const RunFolder& run, std::string_view which) {
  best_step(run.path());  // refuses a damaged record before anything is written
  if (!list_checkpoints(run.path()).empty())
    return {.from = open_checkpoint(run.path(), which), .initial = std::nullopt};
  const std::optional<Json> manifest = run.read_manifest();
  if (const std::string sign = sign_of_lost_checkpoints(run, manifest); !sign.empty())
    fail(Fault::data, run.path(), " has lost its checkpoints (", sign,
         "): resumed, it would begin again at step 1 and overwrite its metrics. Put ", run.checkpoints(),
         " back.", begin_anew());
  std::optional<Checkpoint> initial = read_initial(run.path());
  if (!initial && (known(manifest, origin_key) != nullptr || io::exists(initial_folder(run.path()))))
    fail(Fault::data, run.path(), " begins from the weights of another run, which its folder ",
         initial_folder(run.path()).filename(),
         " has no more: resumed, it would begin from random ones. Put them back.", begin_anew());
  return {.from = std::nullopt, .initial = std::move(initial)};
}

Json first_checkpoint(const std::optional<Json>& before, int64_t step) {
  if (const Json* first = known(before, first_checkpoint_key)) return *first;
  return step > 0 ? Json(step) : Json();
}

}  // namespace heed
