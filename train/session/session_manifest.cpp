// Writes manifest.json.
#include "heed/train/session/session_manifest.h"

#include "heed/core/io/files.h"
#include "heed/train/experiments/preset_diff.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/run/format_version.h"
#include "heed/train/run/resume_point.h"
#include "heed/train/run/session_history.h"

namespace heed {

void write_manifest(Config& config, const RunFolder& folder, Trainer& trainer,
                    const ParsedArguments& arguments, const ProcessGroup& group,
                    const std::optional<Json>& origin) {
  const std::optional<Json> old_manifest = folder.read_manifest();
  const Json session = session_metadata(arguments.argv, group.size(), trainer.step());
  if (old_manifest) {
    const std::string warning = resume_warning(sessions_of(*old_manifest), session, trainer.step());
    if (!warning.empty()) io::print_error(warning + "\n");
  }
  Json metadata = Json::object({{"format", run_format}});
  add_session(metadata, old_manifest ? &*old_manifest : nullptr, session);
  metadata.set("seed", config.train.seed);
  metadata.set("parameters", count_parameters(trainer.model()));
  metadata.set("steps", trainer.total_steps());
  metadata.set("config_key", "config.toml holds every setting");
  metadata.set("settings", settings_facts(config));
  metadata.set("estimate", estimate_json(trainer.estimate()));
  if (config.train.pretrain != Pretrain::none)
    metadata.set("pretraining", pretraining_metadata(config, folder.path()));
  const Json* recorded_origin = old_manifest ? old_manifest->find("from") : nullptr;
  if (origin)
    metadata.set("from", *origin);
  else if (recorded_origin != nullptr)
    metadata.set("from", *recorded_origin);
  for (const auto& [name, value] : config.task->metadata()) metadata.set(name, value);
  // A session that only computes missing scores takes no step: the measurements of earlier steps remain.
  if (const Json* took = old_manifest ? old_manifest->find("took") : nullptr) metadata.set("took", *took);
  metadata.set(first_checkpoint_key, first_checkpoint(old_manifest, trainer.step()));
  folder.write_manifest(metadata);
}

void note_what_it_took(const RunFolder& folder, const Json& took) {
  Json manifest = folder.read_manifest().value_or(Json::object());
  std::vector<Json> sessions = sessions_of(manifest);
  if (!sessions.empty()) {
    sessions.back().set("took", took);
    manifest.set("sessions", std::move(sessions));
  }
  manifest.set("took", took);
  folder.write_manifest(manifest);
}

}  // namespace heed
