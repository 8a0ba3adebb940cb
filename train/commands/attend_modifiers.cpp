// Reads modifiers of scores and heads from options.
#include "heed/train/commands/attend_modifiers.h"

#include <algorithm>

#include "heed/nn/transformer.h"

namespace heed {

std::vector<CommandOption> with_modifier_options(std::vector<CommandOption> options) {
  options.insert(
      options.end(),
      {{"position", "WORD", "none, rope, rope_interleaved, alibi, t5, shaw or shaw_keys (default: none)"},
       {"position-base", "X", "rope: the slowest pair takes about this many positions (default: 10000)"},
       {"position-buckets", "N", "t5: number of distance buckets (default: 32)"},
       {"position-span", "N", "t5 and shaw: distances from here on are treated alike (default: 128)"},
       {"qk-norm", "WORD", "none, rms or l2: queries and keys normalised, with a gain (default: none)"},
       {"softcap", "X", "cap on scores s: cap * tanh(s / cap); 0: none (default: 0)"},
       {"sink", "WORD", "none, zero or learned: one more score in each softmax (default: none)"}});
  return options;
}

namespace {

/// Checks the settings; an error names --key in place of model.key.
void check(const TransformerConfig& model) {
  try {
    model.check();
  } catch (const Error& error) {
    std::string said = error.what();
    const std::string group = "model.";
    if (!said.starts_with(group)) throw;
    said.replace(0, group.size(), "--");
    std::replace(said.begin(), said.begin() + static_cast<int64_t>(said.find(' ')), '_', '-');
    throw Error(error.fault(), said);
  }
}

}  // namespace

Modifiers read_modifiers(const ParsedArguments& arguments) {
  TransformerConfig model;  // its settings have the same names, and check() knows what they may be
  model.position = PositionKind::none;
  for (const CommandOption& option : with_modifier_options({})) {
    if (!arguments.has(option.name)) continue;
    std::string key = option.name;
    std::replace(key.begin(), key.end(), '-', '_');
    set_option(model, key, arguments.get(option.name), text("--", option.name, ": "));
  }
  const bool added = is_sinusoidal(model.position) || model.position == PositionKind::learned;
  if (added) {
    fail("--position: '", arguments.get("position"),
         "' is added to the embeddings of a model, which attend has none of. It takes none, rope, "
         "rope_interleaved, alibi, t5, shaw or shaw_keys.");
  }
  check(model);
  Modifiers modifiers = model.modifiers;
  modifiers.position = inside_attention(model.position) ? model.position : PositionKind::none;
  return modifiers;
}

}  // namespace heed
