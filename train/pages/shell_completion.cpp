// Completion scripts for bash and zsh.
#include <algorithm>

#include "heed/attention/variant.h"
#include "heed/data/download/download.h"
#include "heed/train/experiments/reproduction.h"
#include "heed/train/pages/pages.h"
#include "heed/train/session/arguments.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

/// Words of a script, separated by blanks.
struct Words {
  std::string all = {};

  template <class List, class Word>
  Words(const List& list, const Word& word) {
    for (const auto& one : list) add(word(one));
  }
  Words() = default;
  void add(const std::string& word) { all += (all.empty() ? "" : " ") + word; }
};

std::string options_of_command(const Command& command) {
  Words words(documented_options(command), [](const CommandOption& one) { return text("--", one.name); });
  for (const Setting& setting : command.settings ? settings() : std::vector<Setting>{}) {
    words.add("--" + setting.option);
    if (!setting.brief.empty()) words.add("--" + setting.brief);
  }
  words.add("--help");
  return words.all;
}

std::string attention_names() {
  return Words(variants(), [](const Variant& one) { return std::string(one.traits.name); }).all;
}

/// The words that `positional` lists in small letters: "get check generate" of "get|check|generate
/// NAME|PATH".
std::string words_of_usage(std::string_view positional) {
  Words words;
  for (std::string_view rest = positional.substr(0, positional.find(' ')); !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('|'));
    if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos) return "";
    words.add(std::string(word));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return words.all;
}

/// A line of a shell's `case` for each command: its options, the words that its first argument may be, and
/// whether that may be a file, too.
std::string command_cases(std::span<const Command> commands) {
  const std::string presets_of_all = Words(presets(), [](const Preset& one) { return one.name; }).all;
  const std::string tables = Words(published(), [](const PublishedTable& one) { return one.name; }).all;
  std::string cases;
  for (const Command& command : commands) {
    const std::string_view positional = command.positional;
    std::string first = words_of_usage(positional);
    if (positional == "TABLE") first = tables;
    if (positional == "SPEC") first = attention_names();
    const bool words_alone = !first.empty();
    if (positional.starts_with("PRESET")) first = presets_of_all;
    cases += text("    ", command.name, ") options='", options_of_command(command), "'");
    if (!first.empty()) cases += text(" first='", first, "'");
    cases += text(words_alone ? " files=" : "", " ;;\n");
  }
  return cases;
}

/// A line of a shell's `case` for each first argument whose second is a word: list attention, data get.
std::string second_argument_cases() {
  const std::string corpora = Words(remote_corpora(), [](const RemoteCorpus& one) { return one.name; }).all;
  return text("    'list attention') second='", attention_names(), "' ;;\n    'data get') second='", corpora,
              "' ;;\n");
}

}  // namespace

std::string bash_completion(std::span<const Command> commands) {
  const std::string names = Words(commands, [](const Command& one) { return std::string(one.name); }).all;
  return text(
      "# bash completion for heed, made by heed list commands --completion\n"
      "_heed() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local options='' first='' second='' files=1\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '",
      names,
      " --help --version' -- \"$word\"))\n    return\n  fi\n"
      "  case $before in\n    --attention | --cross-attention) COMPREPLY=($(compgen -W '",
      attention_names(),
      "' -- \"$word\")) && return ;;\n"
      "    --device) COMPREPLY=($(compgen -W 'auto cpu cuda' -- \"$word\")) && return ;;\n  esac\n"
      "  case ${COMP_WORDS[1]} in\n",
      command_cases(commands), "  esac\n  case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n",
      second_argument_cases(),
      "  esac\n"
      "  if [ \"${word#-}\" != \"$word\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "    return\n"
      "  elif [ \"$COMP_CWORD\" = 2 ]; then\n"
      "    COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
      "    [ \"$files\" ] || return 0\n"
      "  elif [ \"$COMP_CWORD\" = 3 ] && [ \"$second\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$second\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  COMPREPLY+=($(compgen -f -- \"$word\"))\n"
      "}\n"
      "complete -o filenames -F _heed heed ./heed\n");
}

std::string zsh_completion(std::span<const Command> commands) {
  std::string about;
  for (const Command& command : commands)
    about += text(" ", shell_word(text(command.name, ":", command.about)));
  return text(
      "#compdef heed\n# zsh completion for heed, made by heed list commands --completion zsh\n"
      "_heed() {\n  local word=${words[CURRENT]} options='' first='' second='' files=1\n"
      "  local -a about=(",
      about,
      " )\n  if (( CURRENT == 2 )); then\n    _describe command about\n    compadd -- --help --version\n"
      "    return\n  fi\n"
      "  case ${words[CURRENT-1]} in\n    --attention | --cross-attention) compadd -- ",
      attention_names(), "; return ;;\n    --device) compadd -- auto cpu cuda; return ;;\n  esac\n",
      "  case ${words[2]} in\n", command_cases(commands), "  esac\n  case \"${words[2]} ${words[3]}\" in\n",
      second_argument_cases(),
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    compadd -- ${=options}\n"
      "    return\n"
      "  elif (( CURRENT == 3 )); then\n"
      "    compadd -- ${=first}\n"
      "    [[ -n $files ]] || return 0\n"
      "  elif (( CURRENT == 4 )) && [[ -n $second ]]; then\n"
      "    compadd -- ${=second}\n"
      "    return\n"
      "  fi\n"
      "  _files\n"
      "}\n"
      // Where zsh loads the page from $fpath, the page is the body of the function and calls it; where
      // `source` reads it, it registers the function.
      "if [[ ${funcstack[1]} == _heed ]]; then _heed \"$@\"; else compdef _heed heed ./heed; fi\n");
}

}  // namespace heed
