// The sessions of a run in manifest.json: an entry for its start and each resume, with program and machine.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/io/json.h"

namespace heed {

/// The entry of a session that starts after `step` steps: program, source, machine, threads, device.
Json session_metadata(std::span<const std::string> arguments, int64_t processes, int64_t step);

/// The sessions of a manifest, oldest first. A manifest of format 1 has one session only, the last.
std::vector<Json> sessions_of(const Json& manifest);

/// Adds to `manifest` the sessions of `old_manifest` (null: there is none) and `session`. Top-level keys
/// describe program and machine of the first session, for programs that read format 1. The list keeps the
/// first session and the newest 999.
void add_session(Json& manifest, const Json* old_manifest, const Json& session);

/// The session that computed step number `step`; null when unknown.
const Json* session_of_step(const std::vector<Json>& sessions, int64_t step);

/// A property of program or machine and its value: {"instruction set", "avx512"}.
using SessionTraits = std::vector<std::pair<std::string, std::string>>;
/// Properties on which the bits of results depend: program, instruction set, BLAS core, device, processes.
SessionTraits bit_traits(const Json& session);
/// Properties on which the speed depends: bit_traits(), processor and threads.
SessionTraits speed_traits(const Json& session);
/// Lists the properties that differ: "instruction set avx2 instead of avx512" where the current one is avx2.
std::vector<std::string> differences(const SessionTraits& previous, const SessionTraits& current);
/// The properties in one line: "heed 0.1.0 (source 1f2e3d4c5b6a), instruction set avx512, ...".
std::string to_string(const SessionTraits& traits);

/// A warning where the bit_traits() of `session`, which resumes after step `step`, differ from those of the
/// session that computed that step; empty where they agree.
std::string resume_warning(const std::vector<Json>& earlier_sessions, const Json& session, int64_t step);

}  // namespace heed
