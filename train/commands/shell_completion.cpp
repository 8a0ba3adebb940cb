// What bash completes after heed.
#include "heed/attention/variant.h"
#include "heed/train/commands/command.h"
#include "heed/train/commands/installed_pages.h"

namespace heed {
namespace {

void add(std::string& words, const std::string& word) { words += (words.empty() ? "" : " ") + word; }

std::string options_of_command(const Command& command) {
  std::string words;
  for (const CommandOption& option : command.options) add(words, text("--", option.name));
  if (command.settings) {
    for (const CommandOption& option : options_beside_settings(command)) add(words, text("--", option.name));
    for (const Setting& setting : settings()) {
      add(words, "--" + setting.option);
      if (!setting.brief.empty()) add(words, "--" + setting.brief);
    }
  }
  add(words, "--help");
  return words;
}

}  // namespace

std::string bash_completion() {
  std::string names, attentions, preset_names, cases;
  for (const Command& command : commands()) {
    add(names, command.name);
    cases += text("    ", command.name, ") options='", options_of_command(command), "'");
    if (std::string_view(command.positional).starts_with("PRESET")) cases += " first=$presets";
    cases += " ;;\n";
  }
  for (const Variant& variant : variants()) add(attentions, variant.traits.name);
  for (const Preset& preset : presets()) add(preset_names, preset.name);
  std::string out =
      "# bash completion for heed, made by heed list commands --completion\n"
      "_heed() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options='' first=''\n";
  out +=
      text("  local presets='", preset_names, "'\n  COMPREPLY=()\n  if [ \"$COMP_CWORD\" = 1 ]; then\n",
           "    COMPREPLY=($(compgen -W '", names, " --help --version' -- \"$word\"))\n    return\n  fi\n");
  out += text("  case $before in\n    --attention | --cross-attention) COMPREPLY=($(compgen -W '", attentions,
              "' -- \"$word\")) && return ;;\n",
              "    --device) COMPREPLY=($(compgen -W 'auto cpu cuda' -- \"$word\")) && return ;;\n  esac\n");
  out += text("  case ${COMP_WORDS[1]} in\n", cases, "  esac\n");
  out +=
      "  if [ \"${word#-}\" != \"$word\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  else\n"
      "    [ \"$COMP_CWORD\" != 2 ] || COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
      "    COMPREPLY+=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _heed heed ./heed\n";
  return out;
}

}  // namespace heed
