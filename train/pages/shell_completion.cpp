// Completion scripts for bash and zsh.
#include "heed/attention/variant.h"
#include "heed/train/commands/command.h"
#include "heed/train/pages/pages.h"

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

/// The names of all attentions and of all presets, which both shells offer.
std::string attention_names() {
  std::string names;
  for (const Variant& variant : variants()) add(names, variant.traits.name);
  return names;
}

std::string preset_names() {
  std::string names;
  for (const Preset& preset : presets()) add(names, preset.name);
  return names;
}

/// A line of a shell's `case` for each command: its options, and whether it takes a preset first.
std::string command_cases() {
  std::string cases;
  for (const Command& command : commands()) {
    cases += text("    ", command.name, ") options='", options_of_command(command), "'");
    if (std::string_view(command.positional).starts_with("PRESET")) cases += " first=$presets";
    cases += " ;;\n";
  }
  return cases;
}

/// Text between single quotes of a shell.
std::string shell_quoted(std::string_view words) {
  std::string out = "'";
  for (const char c : words) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string bash_completion() {
  std::string names;
  for (const Command& command : commands()) add(names, command.name);
  std::string out =
      "# bash completion for heed, made by heed list commands --completion\n"
      "_heed() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options='' first=''\n";
  out +=
      text("  local presets='", preset_names(), "'\n  COMPREPLY=()\n  if [ \"$COMP_CWORD\" = 1 ]; then\n",
           "    COMPREPLY=($(compgen -W '", names, " --help --version' -- \"$word\"))\n    return\n  fi\n");
  out += text("  case $before in\n    --attention | --cross-attention) COMPREPLY=($(compgen -W '",
              attention_names(), "' -- \"$word\")) && return ;;\n",
              "    --device) COMPREPLY=($(compgen -W 'auto cpu cuda' -- \"$word\")) && return ;;\n  esac\n");
  out += text("  case ${COMP_WORDS[1]} in\n", command_cases(), "  esac\n");
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

std::string zsh_completion() {
  std::string about;
  for (const Command& command : commands())
    about += text(" ", shell_quoted(text(command.name, ":", command.about)));
  std::string out = text(
      "#compdef heed\n# zsh completion for heed, made by heed list commands --completion zsh\n"
      "_heed() {\n  local word=${words[CURRENT]} options='' first=''\n  local presets='",
      preset_names(), "'\n  local -a about=(", about,
      " )\n  if (( CURRENT == 2 )); then\n    _describe command about\n    compadd -- --help --version\n"
      "    return\n  fi\n");
  out += text("  case ${words[CURRENT-1]} in\n    --attention | --cross-attention) compadd -- ",
              attention_names(), "; return ;;\n    --device) compadd -- auto cpu cuda; return ;;\n  esac\n");
  out += text("  case ${words[2]} in\n", command_cases(), "  esac\n");
  out +=
      "  if [[ $word == -* ]]; then\n"
      "    compadd -- ${=options}\n"
      "  else\n"
      "    (( CURRENT != 3 )) || compadd -- ${=first}\n"
      "    _files\n"
      "  fi\n"
      "}\n"
      // As a file of $fpath this is the body of the function itself; read by `source` it names the function.
      "if [[ ${funcstack[1]} == _heed ]]; then _heed \"$@\"; else compdef _heed heed ./heed; fi\n";
  return out;
}

}  // namespace heed
