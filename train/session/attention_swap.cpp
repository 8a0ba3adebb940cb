// Reads --attention, --cross-attention and --layers of commands that open a run.
#include "heed/train/session/attention_swap.h"

#include "heed/attention/layered_spec.h"

namespace heed {

void AttentionSwap::apply(Config& config) const {
  const auto replace = [&](const char* key, const std::string& trained, const std::string& spec,
                           const char* option) {
    if (!spec.empty())
      config.set(key, with_layers(trained, spec, layers), text(option, ": "), SetBy::command_line);
  };
  replace("attention.encoder", config.attention.encoder, self, "--attention");
  replace("attention.decoder", config.attention.decoder, self, "--attention");
  replace("attention.cross", config.attention.cross, cross, "--cross-attention");
  if (any()) config.check();
}

std::vector<CommandOption> with_swap_options(std::vector<CommandOption> options) {
  options.insert(
      options.end(),
      {{"attention", "SPEC", "another self-attention on the run's weights: name or name:key=value,..."},
       {"cross-attention", "SPEC", "another attention from decoder to encoder"},
       {"layers", "LAYERS", "with these two: in these layers only, counted from 0: 2, 1-11 or 0,4-6"}});
  return options;
}

AttentionSwap swap_of(const ParsedArguments& arguments) {
  AttentionSwap swap{arguments.get("attention"), arguments.get("cross-attention"), arguments.get("layers")};
  for (const char* option : {"attention", "cross-attention", "layers"}) {
    if (arguments.has(option) && arguments.get(option).empty())
      fail("--", option, " is empty. Give a value.");
  }
  if (arguments.has("layers") && !swap.any())
    fail("--layers says where --attention or --cross-attention goes. Give one of them too.");
  return swap;
}

}  // namespace heed
