// Text made fit for a terminal, and how wide text and terminals are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Whether a terminal obeys this character instead of showing it, or shows the text around it in another
/// order: controls (C0, DEL, C1), marks, embeddings, overrides and isolates of bidirectional text, and the
/// separators of lines and paragraphs.
bool is_terminal_control(char32_t code);

/// Text of unknown origin as people may see it: each terminal control is written as `\u001b`, each byte that
/// is no UTF-8 as `\xff`. Line ends and tabs stay. A text without any of these is returned as it is; JSON
/// stays the same JSON.
std::string terminal_text(std::string_view text);

/// The same for a name or value that is part of a line: line ends and tabs are written as `\u000a` and
/// `\u0009`.
std::string terminal_word(std::string_view text);

/// The columns that a character takes on a terminal: 0 for combining marks, 2 for wide East Asian characters
/// and emoji.
int64_t display_width(char32_t code);
/// The columns that a text takes on a terminal.
int64_t display_width(std::string_view utf8);

/// Columns of the terminal that this file is: COLUMNS where it is a number above 0, else what the terminal
/// says, else `otherwise`.
int64_t terminal_columns(int file, int64_t otherwise);
/// Columns of standard output; 80 where it is no terminal and COLUMNS is not set.
int64_t output_columns();

}  // namespace heed
