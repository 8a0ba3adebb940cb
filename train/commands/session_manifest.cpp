// Keeps manifest.json.
#include "train/commands/session_manifest.h"

#include <cstdio>

#include "train/choices.h"
#include "train/format.h"
#include "train/pretraining.h"
#include "train/sessions.h"

namespace heed {

void write_manifest(Config& config, const RunFolder& folder, Trainer& trainer, const Invocation& call,
                    const Group* group) {
  const std::optional<Json> before = folder.read_manifest();
  const Json session = session_facts(call.arguments, group != nullptr ? group->size() : 1, trainer.step());
  if (before) {
    const std::string warning = resume_warning(sessions_of(*before), session, trainer.step());
    if (!warning.empty()) std::fprintf(stderr, "%s\n", warning.c_str());
  }
  Json facts = Json::object({{"format", run_format}});
  add_session(facts, before ? &*before : nullptr, session);
  facts.set("seed", config.train.seed);
  facts.set("parameters", count_parameters(trainer.model()));
  facts.set("steps", trainer.total_steps());
  facts.set("config_key", "config.toml holds every setting");
  facts.set("settings", settings_facts(config));
  facts.set("estimate", estimate_facts(trainer.estimate()));
  if (config.train.pretrain != Pretrain::none)
    facts.set("pretraining", pretraining_facts(config, folder.path()));
  for (const auto& [name, value] : config.task->facts()) facts.set(name, value);
  // A session that takes no step, because all were taken and only scores were missing, has none of its own.
  if (const Json* took = before ? before->find("took") : nullptr) facts.set("took", *took);
  folder.write_manifest(facts);
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
