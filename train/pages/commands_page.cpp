// The page docs/reference/commands.md.
#include "heed/core/io/table_text.h"
#include "heed/train/pages/pages.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

/// "- `term`: help".
std::string list_entry(const std::string& term, const std::string& help) {
  return folded(text("- `", term, "`: ", help), page_columns, "  ");
}

std::string command_section(const Command& command) {
  const std::string words = command.positional;
  std::string out = text("\n## ", command.name, "\n\n```\nheed ", command.name, words.empty() ? "" : " ",
                         words, " [OPTIONS]\n```\n\n", folded(command.about, page_columns));
  if (command.more != nullptr) out += text("\n```\n", folded_lines(command.more(), page_columns), "```\n");
  out += "\n";
  if (!words.empty()) out += list_entry(words, command.positional_help);
  for (const CommandOption& option : documented_options(command))
    out += list_entry(text("--", option.name, *option.value == '\0' ? "" : " ", option.value), option.help);
  if (command.settings) out += "- Every setting is an option too: [settings](settings.md).\n";
  return out;
}

}  // namespace

std::vector<CommandOption> documented_options(const Command& command) {
  std::vector<CommandOption> out = command.options;
  if (!command.settings) return out;
  for (const CommandOption& option : options_beside_settings(command)) out.push_back(option);
  return out;
}

std::string commands_markdown(std::span<const Command> commands) {
  std::string out =
      "# Commands\n\nMade by `heed list commands --markdown`; a test keeps it up to date. "
      "`heed COMMAND --help` prints the same.\n\n";
  for (const Command& command : commands) out += list_entry(command.name, command.about);
  for (const Command& command : commands) out += command_section(command);
  std::vector<TableRow> codes{{"code", "meaning"}};
  for (const ExitCode& one : exit_codes) codes.push_back({one.code, one.meaning});
  return out + "\n## Exit codes\n\n" + markdown_table(codes);
}

}  // namespace heed
