// Line ends, and characters split over several ids.
#include "heed/data/tokenizers/streamed_text.h"

#include <algorithm>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// Ids decoded again before new ones, so that blanks between tokens appear.
constexpr size_t context = 8;

bool line_by_line(const Tokenizer& tokenizer) {
  return tokenizer.kind() == "sentencepiece" || tokenizer.kind() == "word";
}

/// True if the text ends within a multi-byte character.
bool unfinished(std::string_view text) {
  size_t tail = 0;  // continuation bytes at the end
  while (tail < 3 && tail < text.size() &&
         (static_cast<unsigned char>(text[text.size() - 1 - tail]) & 0xC0) == 0x80)
    ++tail;
  if (tail == text.size()) return false;
  const auto lead = static_cast<unsigned char>(text[text.size() - 1 - tail]);
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

StreamedText::StreamedText(const Tokenizer& tokenizer, std::span<const int32_t> before)
    : tokenizer_(tokenizer), ids_(before.begin(), before.end()), given_(before.size()) {}

std::string StreamedText::fresh() const {
  const std::string all = decode_lines(tokenizer_, ids_);
  return all.substr(std::min(all.size(), decode_lines(tokenizer_, std::span(ids_).first(given_)).size()));
}

std::string StreamedText::add(int32_t id) {
  ids_.push_back(id);
  std::string out = fresh();
  if (unfinished(out)) return {};
  if (ids_.size() > 2 * context) ids_.erase(ids_.begin(), ids_.end() - static_cast<std::ptrdiff_t>(context));
  given_ = ids_.size();
  return out;
}

std::string StreamedText::rest() {
  std::string out = fresh();
  given_ = ids_.size();
  return out;
}

}  // namespace heed
