// Decodes ids to text with line ends, also while they arrive one by one and split characters.
#include "heed/data/tokenizers/streamed_text.h"

#include <algorithm>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// Number of earlier ids that are decoded again with each new one, so that blanks between tokens appear.
constexpr size_t num_context_ids = 8;

/// True if the tokenizer has no token for a line end.
bool line_by_line(const Tokenizer& tokenizer) {
  return tokenizer.kind() == "sentencepiece" || tokenizer.kind() == "word";
}

/// True if the text ends within a multi-byte character.
bool ends_within_character(std::string_view text) {
  const auto byte_from_end = [&](size_t i) { return static_cast<unsigned char>(text[text.size() - 1 - i]); };
  size_t tail = 0;  // continuation bytes at the end
  while (tail < 3 && tail < text.size() && (byte_from_end(tail) & 0xC0) == 0x80) ++tail;
  if (tail == text.size()) return false;
  const unsigned char lead = byte_from_end(tail);
  const size_t needed = lead >= 0xF0 && lead <= 0xF4  ? 3
                        : lead >= 0xE0 && lead < 0xF0 ? 2
                        : lead >= 0xC2 && lead < 0xE0 ? 1
                                                      : 0;
  return tail < needed;
}

}  // namespace

std::vector<int32_t> encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  if (!line_by_line(tokenizer)) return tokenizer.encode(text);
  const std::vector<std::string_view> lines = split_fields(text, '\n');
  std::vector<std::vector<int32_t>> parts(lines.size());
  parallel_rows(static_cast<int64_t>(lines.size()), 64, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      parts[i] = tokenizer.encode(lines[i]);
  });
  std::vector<int32_t> ids;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) ids.push_back(tokenizer.end());
    ids.insert(ids.end(), parts[i].begin(), parts[i].end());
  }
  return ids;
}

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = encode_lines(tokenizer, text);
  if (!ids.empty() && tokenizer.document_start() >= 0) ids.insert(ids.begin(), tokenizer.document_start());
  return ids;
}

std::string decode_lines(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  if (!line_by_line(tokenizer)) return tokenizer.decode(ids);
  std::string out;
  while (true) {
    const auto end = std::find(ids.begin(), ids.end(), tokenizer.end());
    out += tokenizer.decode({ids.begin(), end});
    if (end == ids.end()) return out;
    out += '\n';
    ids = {end + 1, ids.end()};
  }
}

StreamedText::StreamedText(const Tokenizer& tokenizer, std::span<const int32_t> prompt)
    : tokenizer_(tokenizer), ids_(prompt.begin(), prompt.end()), num_returned_(prompt.size()) {}

std::string StreamedText::pending_text() const {
  const std::string all = decode_lines(tokenizer_, ids_);
  return all.substr(
      std::min(all.size(), decode_lines(tokenizer_, std::span(ids_).first(num_returned_)).size()));
}

std::string StreamedText::add(int32_t id) {
  ids_.push_back(id);
  std::string out = pending_text();
  if (ends_within_character(out)) return {};
  if (ids_.size() > 2 * num_context_ids)
    ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(num_context_ids));
  num_returned_ = ids_.size();
  return out;
}

std::string StreamedText::rest() {
  std::string out = pending_text();
  num_returned_ = ids_.size();
  return out;
}

}  // namespace heed
