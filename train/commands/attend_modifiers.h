// What heed attend takes of a model's settings: that which acts on heads and scores.
#pragma once

#include "nn/attention.h"
#include "train/commands/verb.h"

namespace heed {

/// The options of a verb that takes modifiers, after its own.
std::vector<VerbOption> with_modifiers(std::vector<VerbOption> options);
/// What a call asks for, by the rules of model.position, model.softcap and so on. Fails naming the option.
Modifiers read_modifiers(const Invocation& call);

}  // namespace heed
