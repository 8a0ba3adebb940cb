// Finds the weights that a run continues with, and refuses where they are lost.
#include "heed/train/run/resume_point.h"

#include "heed/core/io/files.h"
#include "heed/core/settings_in_errors.h"
#include "heed/train/run/weights_from_run.h"

namespace heed {
namespace {

/// A value of the manifest; null where manifest or key is missing, or the value is JSON's null.
const Json* find_known(const std::optional<Json>& manifest, const char* key) {
  const Json* value = manifest ? manifest->find(key) : nullptr;
  return value == nullptr || value->is_null() ? nullptr : value;
}

/// The evidence that a run without a checkpoint has had one; empty where it was stopped before its first.
/// Manifests of earlier programs have no first_checkpoint_key: there, metrics are the evidence.
std::string evidence_of_lost_checkpoints(const RunFolder& run, const std::optional<Json>& manifest) {
  if (find_known(manifest, "imported") != nullptr) return "it was imported with one";
  if (const Json* step = find_known(manifest, first_checkpoint_key))
    return text("its first was of step ", step->dump());
  const bool records_first = manifest && manifest->find(first_checkpoint_key) != nullptr;
  const bool has_metrics = io::exists(run.metrics()) && io::size(run.metrics()) > 0;
  return has_metrics && !records_first ? text(run.metrics().filename(), " has its steps") : "";
}

std::string advice_to_begin_anew() {
  return advice(" Or begin a new run, with another --name.", " Or name another folder.");
}

}  // namespace

ResumePoint resume_point(const RunFolder& run, std::string_view which) {
  best_step(run.path());  // refuses a damaged record before anything is written
  if (!list_checkpoints(run.path()).empty())
    return {.checkpoint = open_checkpoint(run.path(), which), .weights_from_run = std::nullopt};
  const std::optional<Json> manifest = run.read_manifest();
  if (const std::string evidence = evidence_of_lost_checkpoints(run, manifest); !evidence.empty())
    fail(Fault::data, run.path(), " has lost its checkpoints (", evidence,
         "): resumed, it would begin again at step 1 and overwrite its metrics. Put ", run.checkpoints(),
         " back.", advice_to_begin_anew());
  std::optional<Checkpoint> weights = read_weights_from_run(run.path());
  const Path weights_folder = weights_from_run_folder(run.path());
  if (!weights && (find_known(manifest, origin_key) != nullptr || io::exists(weights_folder)))
    fail(Fault::data, run.path(), " begins from the weights of another run, which its folder ",
         weights_folder.filename(), " has no more: resumed, it would begin from random ones. Put them back.",
         advice_to_begin_anew());
  return {.checkpoint = std::nullopt, .weights_from_run = std::move(weights)};
}

Json first_checkpoint(const std::optional<Json>& old_manifest, int64_t step) {
  if (const Json* first = find_known(old_manifest, first_checkpoint_key)) return *first;
  return step > 0 ? Json(step) : Json();
}

}  // namespace heed
