// Checks error messages.
#include "heed/tests/fuzz/refusal.h"

#include "heed/core/error.h"

namespace heed::law {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Length of the valid UTF-8 sequence at the start, 0 for none. Written anew here: what is tested is not its
/// own judge.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  return length;
}

/// Whether a number follows one of the words that say where.
bool has_place(std::string_view text) {
  for (const std::string_view word : {"byte ", "bytes ", "line ", ":"}) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      const size_t next = at + word.size();
      if (next < text.size() && is_digit(text[next])) return true;
    }
  }
  return false;
}

}  // namespace

std::string fault_of_refusal(std::string_view name, std::string_view message, bool has_parts) {
  if (message.size() > 4000) return "the refusal is longer than 4,000 bytes";
  for (size_t at = 0; at < message.size();) {
    const size_t length = sequence(message.substr(at));
    const auto first = static_cast<unsigned char>(message[at]);
    const bool control = (first < 0x20 && first != '\n') || first == 0x7F ||
                         (first == 0xC2 && length == 2 && static_cast<unsigned char>(message[at + 1]) < 0xA0);
    if (length == 0 || control)
      return text("byte ", at, " of the refusal is none that a terminal may be sent");
    at += length;
  }
  const size_t at = message.find(name);
  if (at == std::string_view::npos) return text("the refusal does not name the file ", name);
  std::string rest(message);
  rest.erase(at, name.size());
  if (!has_parts && !has_place(rest)) return "the refusal names no place in the file";
  return {};
}

}  // namespace heed::law
