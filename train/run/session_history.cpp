// Writes and compares the list of sessions.
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

/// The top-level keys of format 1.
constexpr const char* session_keys[] = {
    "heed",    "source",   "commit", "compiler",  "cpu",        "cpu_threads", "openblas_coretype",
    "started", "command",  "isa",    "blas_core", "blas_build", "threads",     "device",
    "gpu",     "processes"};

/// A value as text; "unknown" when missing.
std::string words(const Json& session, const char* key) {
  const Json* value = session.find(key);
  if (value == nullptr || value->is_null()) return "unknown";
  return shown(value->is_text() ? value->text() : value->dump());
}

void take(SessionTraits& traits, const Json& session, const char* key, const char* name) {
  if (session.find(key) != nullptr) traits.emplace_back(name, words(session, key));
}

int64_t first_step(const Json& session) {
  const Json* step = session.find("step");
  return step != nullptr && step->is_integer() ? step->integer() : 0;
}

}  // namespace

Json session_metadata(std::span<const std::string> arguments, int64_t processes, int64_t step) {
  Json metadata = manifest_basics(arguments);
  metadata.set("isa", to_string(isa()));
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
    for (const Json& one : list->list()) one.members();  // Fault::data unless an object
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

void add_session(Json& manifest, const Json* before, const Json& session) {
  std::vector<Json> all = before != nullptr ? sessions_of(*before) : std::vector<Json>{};
  all.push_back(session);
  if (all.size() > max_sessions)
    all.erase(all.begin() + 1, all.end() - static_cast<std::ptrdiff_t>(max_sessions - 1));
  for (const char* key : session_keys) {
    if (const Json* value = all.front().find(key)) manifest.set(key, *value);
  }
  manifest.set("sessions", std::move(all));
}

const Json* session_of_step(const std::vector<Json>& sessions, int64_t step) {
  // A resume drops all checkpoints after its step, so the newest session before `step` computed it.
  const auto found = std::find_if(sessions.rbegin(), sessions.rend(),
                                  [&](const Json& one) { return first_step(one) < step; });
  return found == sessions.rend() ? nullptr : &*found;
}

SessionTraits bit_traits(const Json& session) {
  // Sources without a hash are older programs, so "unknown" differs from every hash.
  SessionTraits traits{{"heed", text(words(session, "heed"), " (source ", words(session, "source"), ", ",
                                     words(session, "compiler"), ")")}};
  take(traits, session, "isa", "instruction set");
  // A build for one machine (native) names no instruction set: compare processors instead.
  if (words(session, "isa") == "native") take(traits, session, "cpu", "processor");
  take(traits, session, "blas_core", "OpenBLAS core");
  take(traits, session, "device", "device");
  take(traits, session, "gpu", "GPU");
  take(traits, session, "processes", "processes");
  return traits;
}

SessionTraits speed_traits(const Json& session) {
  SessionTraits traits = bit_traits(session);
  if (words(session, "isa") != "native") take(traits, session, "cpu", "processor");
  take(traits, session, "cpu_threads", "threads of the machine");
  take(traits, session, "threads", "threads");
  return traits;
}

std::vector<std::string> differences(const SessionTraits& before, const SessionTraits& now) {
  const auto value = [](const SessionTraits& traits, const std::string& name) {
    const auto found =
        std::find_if(traits.begin(), traits.end(), [&](const auto& one) { return one.first == name; });
    return found == traits.end() ? std::string("none") : found->second;
  };
  std::vector<std::string> out;
  for (const auto& [name, current] : now) {
    if (const std::string previous = value(before, name); previous != current)
      out.push_back(text(name, " ", current, " instead of ", previous));
  }
  for (const auto& [name, previous] : before) {
    if (value(now, name) == "none") out.push_back(text(name, " none instead of ", previous));
  }
  return out;
}

std::string to_string(const SessionTraits& traits) {
  std::string out;
  for (const auto& [name, value] : traits) out += text(out.empty() ? "" : ", ", name, " ", value);
  return out;
}

std::string resume_warning(const std::vector<Json>& before, const Json& now, int64_t step) {
  const Json* last = session_of_step(before, step);
  if (last == nullptr) return {};
  std::string all;
  for (const std::string& one : differences(bit_traits(*last), bit_traits(now)))
    all += (all.empty() ? "" : "; ") + one;
  if (all.empty()) return {};
  return text(
      "warning: the steps to ", step, " were computed otherwise than those to come: ", all,
      ". The last bits of weights and losses from here on are those of neither way alone. Training goes "
      "on; manifest.json lists every session.");
}

}  // namespace heed
