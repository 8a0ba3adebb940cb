// Strict readers of saved tokenizers: line by line, token to id in JSON, and bytes behind their checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/json.h"

namespace heed::detail {

/// Reads a saved tokenizer line by line; every error is Fault::data and names the line.
class SavedLines {
 public:
  /// The first line must equal the title. `bytes` and `name` must outlive it.
  SavedLines(std::string_view bytes, std::string_view title, std::string_view name);

  /// Takes the next line, without its end; the last line must have an end too.
  std::string_view next();
  /// The rest of the next line after `key` and a blank.
  std::string_view value(std::string_view key);
  /// The value of `key` as an integer, at most the number of entries that the remaining bytes can hold.
  int64_t count(std::string_view key = "count");
  /// Fails if lines are left.
  void finish();

  /// Fails, naming the line.
  template <class... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    fail(Fault::data, name_, ", line ", line_, ": ", parts...,
         ". The bytes are damaged; take the tokenizer of another checkpoint of the run.");
  }

 private:
  std::string_view rest_;
  std::string_view name_;
  int64_t line_ = 0;
};

/// A saved tokenizer: a title, which ends a line, the SHA-256 of `content` in hexadecimal digits, a newline,
/// and the content.
std::string with_checksum(std::string_view title, std::string_view content);
/// The content of bytes that with_checksum() made, within them. Fault::data that names the kind of tokenizer
/// for another title, and the bytes where the checksum is not theirs.
std::string_view checked_content(std::string_view bytes, std::string_view title, std::string_view kind,
                                 std::string_view name);

/// The names of a JSON object's members in the order of their values. The values must be the numbers from 0
/// on, each once; else Fault::data with a message that begins with `place` and ends with `advice`.
std::vector<std::string> tokens_by_id(const Json::Members& members, std::string_view place,
                                      std::string_view advice);

}  // namespace heed::detail
