// Reads saved vocabularies line by line, and bytes behind their checksum.
#include "heed/data/tokenizers/saved_vocabulary.h"

#include <charconv>
#include <string>

#include "heed/core/io/hash.h"
#include "heed/data/text/text.h"

namespace heed::detail {

SavedLines::SavedLines(std::string_view bytes, std::string_view title, std::string_view name)
    : rest_(bytes), name_(name) {
  check_text(bytes, name);
  if (next() != title) damaged("it must be '", title, "'");
}

std::string_view SavedLines::next() {
  const size_t end = rest_.find('\n');
  ++line_;
  if (end == std::string_view::npos) damaged("the line is cut short");
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  return line;
}

std::string_view SavedLines::value(std::string_view key) {
  const std::string_view line = next();
  if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ' ')
    damaged("it must begin with '", key, "'");
  return line.substr(key.size() + 1);
}

int64_t SavedLines::count(std::string_view key) {
  const std::string_view digits = value(key);
  int64_t number = -1;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // An entry has at least two bytes, which bounds a damaged count.
  if (end.ec != std::errc{} || end.ptr != digits.data() + digits.size() || number < 0 ||
      std::to_string(number) != digits || number > static_cast<int64_t>(rest_.size() / 2)) {
    damaged("'", shown(digits), "' is no possible count");
  }
  return number;
}

void SavedLines::finish() {
  if (rest_.empty()) return;
  ++line_;
  damaged("nothing may follow");
}

std::vector<std::string> tokens_by_id(const Json::Members& members, std::string_view place,
                                      std::string_view advice) {
  const auto count = static_cast<int64_t>(members.size());
  std::vector<std::string> tokens(members.size());
  std::vector<bool> is_taken(members.size());
  for (const auto& [token, value] : members) {
    const int64_t id = value.is_integer() ? value.integer() : -1;
    if (id < 0 || id >= count || is_taken[static_cast<size_t>(id)]) {
      fail(Fault::data, place, ": the id of '", shown(token), "' is ", shown(value.dump(), 40),
           "; ids must be the whole numbers 0 .. ", count - 1, ", each once.", advice);
    }
    is_taken[static_cast<size_t>(id)] = true;
    tokens[static_cast<size_t>(id)] = token;
  }
  return tokens;
}

std::string with_checksum(std::string_view title, std::string_view content) {
  return text(title, sha256_hex(content), "\n", content);
}

std::string_view checked_content(std::string_view bytes, std::string_view title, std::string_view kind,
                                 std::string_view name) {
  constexpr size_t hash_digits = 64;  // hexadecimal digits of a SHA-256
  constexpr std::string_view remedy = " Take the one of another checkpoint of the run.";
  const size_t header_bytes = title.size() + hash_digits + 1;
  if (!bytes.starts_with(title) || bytes.size() <= header_bytes || bytes[header_bytes - 1] != '\n')
    fail(Fault::data, name, ": byte 0: this is no saved tokenizer of the kind ", kind, ".", remedy);
  const std::string_view content = bytes.substr(header_bytes);
  if (sha256_hex(content) != bytes.substr(title.size(), hash_digits))
    fail(Fault::data, name, ": bytes ", header_bytes, "-", bytes.size() - 1, " do not match their SHA-256.",
         remedy);
  return content;
}

}  // namespace heed::detail
