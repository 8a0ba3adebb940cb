// Documentation made from the list of commands: pages of docs/reference, and files that packages install.
#pragma once

#include <span>
#include <string>

#include "heed/train/program.h"

namespace heed {

/// The page docs/reference/commands.md: every command with its arguments and options, and the exit codes.
std::string commands_markdown(std::span<const Command> commands);

/// The page docs/reference/settings.md: every setting with its options.
std::string settings_markdown();

/// The manual page heed(1), in the macros of man(7): every command with its arguments and options.
std::string man_page(std::span<const Command> commands);

/// Completion for bash: commands, their options, and words where these are expected; else files. Source it,
/// or install it as share/bash-completion/completions/heed.
std::string bash_completion(std::span<const Command> commands);

/// Completion for zsh, with a line about each command. Source it after compinit, or install it as the file
/// _heed of a folder of $fpath.
std::string zsh_completion(std::span<const Command> commands);

/// The width of lines of Markdown pages.
inline constexpr int64_t page_columns = 120;

/// The options of a command besides those of settings, which the pages list.
std::vector<CommandOption> documented_options(const Command& command);

/// An exit code of the program.
struct ExitCode {
  const char* code;
  const char* meaning;
};
inline constexpr ExitCode exit_codes[] = {
    {"0", "success"},
    {"1", "an internal error"},
    {"2", "a wrong argument, option or configuration"},
    {"3", "a file whose content is not what it should be"},
    {"4", "a value that is not finite, or training that diverges"},
    {"5", "a file system operation failed"},
    {"6", "another process holds the run folder"},
    {"7", "out of memory"},
    {"8", "the device is missing or failed"},
    {"128 + N", "stopped by signal N (130: Ctrl-C, 143: SIGTERM); a run has saved a checkpoint"}};

}  // namespace heed
