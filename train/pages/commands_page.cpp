// The page docs/reference/commands.md: every command with its arguments and options.
#include "heed/train/commands/command.h"
#include "heed/train/pages/markdown.h"

namespace heed {
namespace {

std::string command_section(const Command& command) {
  const std::string words = command.positional;
  std::string out = text("\n## ", command.name, "\n\n```\nheed ", command.name, words.empty() ? "" : " ",
                         words, " [OPTIONS]\n```\n\n", markdown_text(command.about, ""));
  if (command.more != nullptr) out += text("\n```\n", command.more(), "```\n");
  out += "\n";
  if (!words.empty()) out += markdown_entry(words, command.positional_help);
  for (const CommandOption& option : command.options) {
    const std::string value = option.value;
    out += markdown_entry(text("--", option.name, value.empty() ? "" : " ", value), option.help);
  }
  if (command.settings) {
    for (const CommandOption& option : options_beside_settings(command))
      out += markdown_entry(text("--", option.name, " ", option.value), option.help);
    out += markdown_text("- Every setting is an option too: [settings](settings.md).", "  ");
  }
  return out;
}

}  // namespace

std::string commands_markdown() {
  std::string out =
      "# Commands\n\nMade by `heed list commands --markdown`; a test keeps it up to date. "
      "`heed COMMAND --help` prints the same.\n\n";
  for (const Command& command : commands()) out += markdown_entry(command.name, command.about);
  for (const Command& command : commands()) out += command_section(command);
  return out;
}

}  // namespace heed
