// Keeps the list of sessions, and compares them.
#include "train/sessions.h"

#include <algorithm>

#include "core/blas.h"
#include "core/device.h"
#include "core/gpu.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "train/run_folder.h"

namespace heed {
namespace {

constexpr size_t most_sessions = 1000;

/// The keys that format 1 had at the top level.
constexpr const char* session_keys[] = {
    "heed",    "source",   "commit", "compiler",  "cpu",        "cpu_threads", "openblas_coretype",
    "started", "command",  "isa",    "blas_core", "blas_build", "threads",     "device",
    "gpu",     "processes"};

/// A value as words; "unknown" where it is not there.
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

Json session_facts(std::span<const std::string> arguments, int64_t processes, int64_t step) {
  Json facts = manifest_basics(arguments);
  facts.set("isa", to_string(isa()));
  facts.set("blas_core", blas_core());
  facts.set("blas_build", blas::build());
  facts.set("threads", threads());
  facts.set("device", to_string(default_device));
  if (default_device == Device::cuda) facts.set("gpu", gpu_words());
  facts.set("processes", processes);
  facts.set("step", step);
  return facts;
}

std::vector<Json> sessions_of(const Json& manifest) {
  if (const Json* list = manifest.find("sessions")) {
    for (const Json& one : list->list()) one.members();  // objects, or Fault::data
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
  if (all.size() > most_sessions)
    all.erase(all.begin() + 1, all.end() - static_cast<std::ptrdiff_t>(most_sessions - 1));
  for (const char* key : session_keys) {
    if (const Json* value = all.front().find(key)) manifest.set(key, *value);
  }
  manifest.set("sessions", std::move(all));
}

const Json* session_of_step(const std::vector<Json>& sessions, int64_t step) {
  // A session drops what earlier ones saved behind the step from which it goes on.
  const auto found = std::find_if(sessions.rbegin(), sessions.rend(),
                                  [&](const Json& one) { return first_step(one) < step; });
  return found == sessions.rend() ? nullptr : &*found;
}

SessionTraits bit_traits(const Json& session) {
  // Programs from before there was a hash are others than those that have one.
  SessionTraits traits{{"heed", text(words(session, "heed"), " (source ", words(session, "source"), ", ",
                                     words(session, "compiler"), ")")}};
  take(traits, session, "isa", "instruction set");
  // Compiled for one machine, it names no set: then the processor is what there is to go by.
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
  for (const auto& [name, here] : now) {
    if (const std::string there = value(before, name); there != here)
      out.push_back(text(name, " ", here, " instead of ", there));
  }
  for (const auto& [name, there] : before) {
    if (value(now, name) == "none") out.push_back(text(name, " none instead of ", there));
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
