// Writes, reads and compares the sessions in a run's manifest.
#include "heed/train/run/session_history.h"

#include <algorithm>

#include "heed/core/device.h"
#include "heed/core/gpu_info.h"
#include "heed/core/isa.h"
#include "heed/core/parallel/blas.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/train/run/run_folder.h"

namespace heed {
namespace {

constexpr size_t max_sessions = 1000;

/// The keys of a session that are top-level keys of the manifest too; in format 1 they are so alone.
constexpr const char* session_keys[] = {
    "heed",    "source",   "commit", "compiler",  "cpu",        "cpu_threads", "openblas_coretype",
    "started", "command",  "isa",    "blas_core", "blas_build", "threads",     "device",
    "gpu",     "processes"};

/// A value as text; "unknown" when it is missing.
std::string value_text(const Json& session, const char* key) {
  const Json* value = session.find(key);
  if (value == nullptr || value->is_null()) return "unknown";
  return shown(value->is_text() ? value->text() : value->dump());
}

/// Adds the value of a key, where the session has it, to the traits.
void add_trait(SessionTraits& traits, const Json& session, const char* key, const char* name) {
  if (session.find(key) != nullptr) traits.emplace_back(name, value_text(session, key));
}

/// The value of the trait `name`; "none" where there is none.
std::string value_of(const SessionTraits& traits, const std::string& name) {
  const auto found =
      std::find_if(traits.begin(), traits.end(), [&](const auto& trait) { return trait.first == name; });
  return found == traits.end() ? std::string("none") : found->second;
}

int64_t first_step(const Json& session) {
  const Json* step = session.find("step");
  return step != nullptr && step->is_integer() ? step->integer() : 0;
}

}  // namespace

Json session_metadata(std::span<const std::string> arguments, int64_t processes, int64_t step) {
  Json metadata = manifest_basics(arguments);
  metadata.set("isa", isa_name());
  metadata.set("blas_core", blas_core());
  metadata.set("blas_build", blas::build());
  metadata.set("threads", threads());
  metadata.set("device", to_string(default_device));
  if (default_device == Device::cuda) metadata.set("gpu", gpu_words());
  metadata.set("processes", processes);
  metadata.set("step", step);
  return metadata;
}

std::vector<Json> sessions_of(const Json& manifest) {
  if (const Json* list = manifest.find("sessions")) {
    for (const Json& session : list->list()) session.members();  // fails with Fault::data unless an object
    return list->list();
  }
  Json only = Json::object();
  for (const char* key : session_keys) {
    if (const Json* value = manifest.find(key)) only.set(key, *value);
  }
  if (const Json* took = manifest.find("took")) only.set("took", *took);
  if (only.members().empty()) return {};
  return {only};
}

void add_session(Json& manifest, const Json* old_manifest, const Json& session) {
  std::vector<Json> all = old_manifest != nullptr ? sessions_of(*old_manifest) : std::vector<Json>{};
  all.push_back(session);
  if (all.size() > max_sessions)
    all.erase(all.begin() + 1, all.end() - static_cast<std::ptrdiff_t>(max_sessions - 1));
  for (const char* key : session_keys) {
    if (const Json* value = all.front().find(key)) manifest.set(key, *value);
  }
  manifest.set("sessions", std::move(all));
}

const Json* session_of_step(const std::vector<Json>& sessions, int64_t step) {
  // A resume removes all checkpoints after its step, so the newest session that began before `step` computed
  // it.
  const auto found = std::find_if(sessions.rbegin(), sessions.rend(),
                                  [&](const Json& session) { return first_step(session) < step; });
  return found == sessions.rend() ? nullptr : &*found;
}

SessionTraits bit_traits(const Json& session) {
  // A program without a hash of its sources is an older one, so its "unknown" differs from every hash.
  SessionTraits traits{{"heed", text(value_text(session, "heed"), " (source ", value_text(session, "source"),
                                     ", ", value_text(session, "compiler"), ")")}};
  add_trait(traits, session, "isa", "instruction set");
  // A build for one machine (native) names no instruction set, so processors are compared instead.
  if (value_text(session, "isa") == "native") add_trait(traits, session, "cpu", "processor");
  add_trait(traits, session, "blas_core", "OpenBLAS core");
  add_trait(traits, session, "device", "device");
  add_trait(traits, session, "gpu", "GPU");
  add_trait(traits, session, "processes", "processes");
  return traits;
}

SessionTraits speed_traits(const Json& session) {
  SessionTraits traits = bit_traits(session);
  if (value_text(session, "isa") != "native") add_trait(traits, session, "cpu", "processor");
  add_trait(traits, session, "cpu_threads", "threads of the machine");
  add_trait(traits, session, "threads", "threads");
  return traits;
}

std::vector<std::string> differences(const SessionTraits& previous, const SessionTraits& current) {
  std::vector<std::string> out;
  for (const auto& [name, value] : current) {
    if (const std::string old_value = value_of(previous, name); old_value != value)
      out.push_back(text(name, " ", value, " instead of ", old_value));
  }
  for (const auto& [name, old_value] : previous) {
    if (value_of(current, name) == "none") out.push_back(text(name, " none instead of ", old_value));
  }
  return out;
}

std::string to_string(const SessionTraits& traits) {
  std::string out;
  for (const auto& [name, value] : traits) out += text(out.empty() ? "" : ", ", name, " ", value);
  return out;
}

std::string resume_warning(const std::vector<Json>& earlier_sessions, const Json& session, int64_t step) {
  const Json* previous = session_of_step(earlier_sessions, step);
  if (previous == nullptr) return {};
  std::string list;
  for (const std::string& difference : differences(bit_traits(*previous), bit_traits(session)))
    list += (list.empty() ? "" : "; ") + difference;
  if (list.empty()) return {};
  return text(
      "warning: the steps to ", step, " were computed otherwise than those to come: ", list,
      ". The last bits of weights and losses from here on are those of neither way alone. Training goes "
      "on; manifest.json lists every session.");
}

}  // namespace heed
