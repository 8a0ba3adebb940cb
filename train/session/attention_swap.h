// Options that replace the attention of a trained run.
#pragma once

#include "heed/train/program.h"

namespace heed {

/// The attentions that --attention, --cross-attention and --layers put into a trained run. An empty spec
/// leaves the attention of the run.
struct AttentionSwap {
  std::string self;    ///< spec of self-attention, in encoder and decoder
  std::string cross;   ///< spec of the attention from decoder to encoder
  std::string layers;  ///< the layers that get these attentions: "1-11"; empty: all

  bool any() const { return !self.empty() || !cross.empty(); }  ///< whether an attention is replaced
  /// Puts the specs into the settings of the run. Fails on an illegal spec or layer.
  void apply(Config& config) const;
};

/// `options` and those that swap_of() reads.
std::vector<CommandOption> with_swap_options(std::vector<CommandOption> options);
/// Reads the options. Fails where one is empty, and for --layers alone.
AttentionSwap swap_of(const ParsedArguments& arguments);

}  // namespace heed
