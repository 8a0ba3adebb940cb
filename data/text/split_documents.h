// Splits a text into the documents that it consists of.
#pragma once

#include <string_view>
#include <vector>

namespace heed {

/// What separates the documents of a text: nothing, as it is one document; a blank line; or each
/// `<|endoftext|>`.
enum class DocumentEnd { none, blank_line, end_of_text };

/// The documents of a text, which together are the text. Each but the first begins with what separates it
/// from the one before: the last blank line, with its line end, or `<|endoftext|>`. A blank line has no
/// characters but white space; blank lines at either end of the text separate nothing.
std::vector<std::string_view> split_documents(std::string_view text, DocumentEnd end);

}  // namespace heed
