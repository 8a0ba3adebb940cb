// Files that packages install beside the program, made from its commands.
#pragma once

#include <string>

namespace heed {

/// The manual page heed(1), in the macros of man(7): every command with its arguments and options.
std::string man_page();

/// Words for bash: commands, their options, presets and attentions where those are expected, else files.
/// Source it, or install it as share/bash-completion/completions/heed.
std::string bash_completion();

/// A completion script for zsh, with a line about each command. Source it after compinit, or install it as
/// the file _heed of a folder of $fpath.
std::string zsh_completion();

}  // namespace heed
