// Text made fit for a terminal, and how wide a terminal is.
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

/// Columns of the terminal that this file is: COLUMNS where it is a number above 0, else what the terminal
/// says, else `otherwise`.
int64_t terminal_columns(int file, int64_t otherwise);

}  // namespace heed
