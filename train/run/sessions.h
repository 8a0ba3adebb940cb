// Sessions of a run: one entry of manifest.json for its start and for each resume, with the program and the
// machine that it ran on.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"

namespace heed {

/// The entry of a session that begins now, behind `step` steps: program, source, machine, threads, device.
Json session_facts(std::span<const std::string> arguments, int64_t processes, int64_t step);

/// The sessions that a manifest lists, oldest first. One of format 1 tells of one alone, the last that wrote
/// it.
std::vector<Json> sessions_of(const Json& manifest);

/// `manifest` with this session behind those before (none: null). Its top-level keys of program and machine
/// stay those of the first session, as programs of format 1 expect them. The list keeps the first and the
/// newest 999.
void add_session(Json& manifest, const Json* before, const Json& session);

/// The session that took step number `step`, as far as the list tells; null for none.
const Json* session_of_step(const std::vector<Json>& sessions, int64_t step);

/// What somebody calls a part of program or machine, and what it is there: {"instruction set", "avx512"}.
using SessionTraits = std::vector<std::pair<std::string, std::string>>;
/// Of what decides the bits: program, instruction set, BLAS core, device, processes.
SessionTraits bit_traits(const Json& session);
/// Of what decides the speed: those, the processor and the threads.
SessionTraits speed_traits(const Json& session);
/// "instruction set avx2 instead of avx512", for each that is not the same.
std::vector<std::string> differences(const SessionTraits& before, const SessionTraits& now);
/// "heed 0.1.0 (source 1f2e3d4c5b6a), instruction set avx512, ...".
std::string to_string(const SessionTraits& traits);

/// What a resume is to be warned of: that it goes on otherwise than the steps until `step` were computed.
/// Empty where it does not.
std::string resume_warning(const std::vector<Json>& before, const Json& now, int64_t step);

}  // namespace heed
