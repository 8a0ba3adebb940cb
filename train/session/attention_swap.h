// Replaces the attention that a run was trained with.
#pragma once

#include "heed/train/program.h"

namespace heed {

/// The attention that --attention, --cross-attention and --layers give a trained run; empty members leave it
/// as it was trained.
struct AttentionSwap {
  std::string self;    ///< spec of self-attention, in encoder and decoder
  std::string cross;   ///< spec of the attention from decoder to encoder
  std::string layers;  ///< swaps in these layers only: "1-11"; empty: in all

  bool any() const { return !self.empty() || !cross.empty(); }  ///< whether anything is swapped
  /// Puts the specs into the settings of the run. Fails on an illegal spec or layer.
  void apply(Config& config) const;
};

/// The options that swap_of() reads.
std::vector<CommandOption> swap_options();
/// Reads the options. Fails on --layers alone.
AttentionSwap swap_of(const ParsedArguments& arguments);

}  // namespace heed
