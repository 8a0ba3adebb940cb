// Finds where the documents of a text begin.
#include "heed/data/text/split_documents.h"

#include <algorithm>

#include "heed/data/text/text.h"
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {
namespace {

/// Offsets of the last blank line before each line that follows one, unless only blank lines come before.
std::vector<size_t> starts_by_blank_lines(std::string_view text) {
  std::vector<size_t> starts;
  bool has_words = false;
  size_t blank = 0;  // offset of the blank line right before `line`; 0: there is none
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size() - 1) + 1;
    if (trimmed(text.substr(line, end - line)).empty()) {
      blank = has_words ? line : 0;
    } else {
      if (blank > 0) starts.push_back(blank);
      blank = 0;
      has_words = true;
    }
    line = end;
  }
  return starts;
}

std::vector<size_t> starts_by_mark(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t at = text.find(end_of_text, 1); at != std::string_view::npos;
       at = text.find(end_of_text, at + 1))
    starts.push_back(at);
  return starts;
}

}  // namespace

std::vector<std::string_view> split_documents(std::string_view text, DocumentEnd end) {
  std::vector<size_t> starts;
  if (end == DocumentEnd::blank_line) starts = starts_by_blank_lines(text);
  if (end == DocumentEnd::end_of_text) starts = starts_by_mark(text);
  std::vector<std::string_view> documents;
  size_t begin = 0;
  for (const size_t start : starts) {
    documents.push_back(text.substr(begin, start - begin));
    begin = start;
  }
  documents.push_back(text.substr(begin));
  return documents;
}

}  // namespace heed
