// Lines and list entries of Markdown.
#include "heed/train/pages/markdown.h"

#include <algorithm>
#include <string_view>

#include "heed/core/error.h"

namespace heed {

std::string markdown_text(const std::string& body, const std::string& indent) {
  constexpr size_t max_columns = 120;
  constexpr std::string_view blanks = " \t\n";
  std::string out, line;
  for (size_t end = 0, at = body.find_first_not_of(blanks); at < body.size();
       at = body.find_first_not_of(blanks, end)) {
    end = std::min(body.find_first_of(blanks, at), body.size());
    const std::string word = body.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > max_columns) {
      out += line + "\n";
      line = indent + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

std::string markdown_entry(const std::string& term, const std::string& help) {
  return markdown_text(text("- `", term, "`", help.empty() ? "" : ": ", help), "  ");
}

}  // namespace heed
