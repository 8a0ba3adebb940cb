// Writes manifest.json of a run: facts about the run, and every session of its training.
#pragma once

#include "heed/train/loop/trainer.h"
#include "heed/train/program.h"

namespace heed {

/// Writes the manifest with the session that begins. Warns where another program or machine computed the
/// earlier steps. `origin`: metadata of the run whose weights this one begins from; given in the first
/// session.
void write_manifest(Config& config, const RunFolder& folder, Trainer& trainer,
                    const ParsedArguments& arguments, const ProcessGroup& group,
                    const std::optional<Json>& origin = {});

/// Records the measured memory and time of training in the manifest and in its last session, the present one.
void note_what_it_took(const RunFolder& folder, const Json& took);

}  // namespace heed
