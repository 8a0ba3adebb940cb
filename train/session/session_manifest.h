// manifest.json of a run: what it is, and every session that it had.
#pragma once

#include "heed/train/commands/command.h"
#include "heed/train/loop/trainer.h"

namespace heed {

/// Writes what the run is, and lists the session that begins. Warns where it goes on by another program or on
/// another machine than the steps before were computed by. `origin`: where weights of another run come from,
/// in the session that puts them in.
void write_manifest(Config& config, const RunFolder& folder, Trainer& trainer,
                    const ParsedArguments& arguments, const ProcessGroup& group,
                    const std::optional<Json>& origin = {});

/// Puts what training took into the manifest, and into the entry of this session, which is the last.
void note_what_it_took(const RunFolder& folder, const Json& took);

}  // namespace heed
