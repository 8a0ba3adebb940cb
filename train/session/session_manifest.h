// Writes manifest.json of a run: its facts, and every session of training that it had.
#pragma once

#include "heed/train/loop/trainer.h"
#include "heed/train/program.h"

namespace heed {

/// Writes the facts of the run, and adds the session that begins. Warns where another program or machine
/// computed the steps before. `origin`: facts of the run whose weights this one begins from, in its first
/// session.
void write_manifest(Config& config, const RunFolder& folder, Trainer& trainer,
                    const ParsedArguments& arguments, const ProcessGroup& group,
                    const std::optional<Json>& origin = {});

/// Adds what training took to the manifest, and to the entry of this session, which is the last.
void note_what_it_took(const RunFolder& folder, const Json& took);

}  // namespace heed
