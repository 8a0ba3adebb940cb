// Lines and list entries of Markdown.
#include "heed/train/commands/markdown.h"

#include <sstream>

#include "heed/core/error.h"

namespace heed {

std::string markdown_text(const std::string& body, const std::string& indent) {
  constexpr size_t max_columns = 120;
  std::istringstream words(body);
  std::string out, line, word;
  while (words >> word) {
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
