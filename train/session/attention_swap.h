// Another attention in the place of the one that a run was trained with.
#pragma once

#include "heed/train/commands/command.h"

namespace heed {

/// What --attention, --cross-attention and --layers ask of a trained run; empty: what it was trained with.
struct AttentionSwap {
  std::string self;    ///< spec of self-attention, in encoder and decoder
  std::string cross;   ///< spec of the attention from decoder to encoder
  std::string layers;  ///< of these layers only: "1-11"; empty: of all

  bool any() const { return !self.empty() || !cross.empty(); }  ///< whether anything is swapped
  /// Puts the specs into the settings of the run. Fails on an illegal spec or layer.
  void apply(Config& config) const;
};

/// The options that swap_of() reads.
std::vector<CommandOption> swap_options();
/// What the arguments ask for. Fails on --layers alone.
AttentionSwap swap_of(const ParsedArguments& arguments);

}  // namespace heed
