// Text made fit for a terminal, and how wide text and terminals are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// Whether a terminal interprets this character instead of showing it, or reorders the text around it:
/// controls (C0, DEL, C1), marks, embeddings, overrides and isolates of bidirectional text, separators of
/// lines and paragraphs.
bool is_terminal_control(char32_t code);

/// Escapes text of unknown origin for a terminal: writes terminal controls as `\u001b` and bytes that are no
/// UTF-8 as `\xff`. Line ends, tabs and all other text are unchanged; JSON stays the same JSON.
std::string terminal_text(std::string_view text);

/// terminal_text() for a name or value within a line: line ends and tabs are escaped too, as `\u000a` and
/// `\u0009`.
std::string terminal_word(std::string_view text);

/// The columns that a character takes on a terminal: 0 for combining marks, 2 for wide East Asian characters
/// and emoji.
int64_t display_width(char32_t code);
/// The columns that a text takes on a terminal.
int64_t display_width(std::string_view utf8);

/// Columns of the terminal behind a file descriptor: COLUMNS where it is a number above 0, else what the
/// terminal reports, else `otherwise`.
int64_t terminal_columns(int file, int64_t otherwise);
/// Columns of standard output; 80 where it is no terminal and COLUMNS is not set.
int64_t output_columns();

}  // namespace heed
