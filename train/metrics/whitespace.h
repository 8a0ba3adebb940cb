// Parts of all translation metrics: splitting at white space, and the check of their arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// True for Unicode white space and the separators U+001C to U+001F.
bool is_score_space(char32_t code);

/// The words of `text`: runs of characters other than white space. They point into `text`.
std::vector<std::string_view> score_words(std::string_view text);

/// A usage error unless there is one reference for each output. `metric` begins the error: "bleu".
void check_references(const char* metric, std::span<const std::string> outputs,
                      std::span<const std::string> references);

}  // namespace heed
