// Reads the lines of a saved vocabulary strictly.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/core/error.h"

namespace heed::detail {

/// Reads a saved tokenizer line by line; every error is Fault::data and names the line.
class SavedLines {
 public:
  /// The first line must equal the title. `bytes` and `name` must outlive it.
  SavedLines(std::string_view bytes, std::string_view title, std::string_view name);

  /// The next line, without its end; the last line must have an end too.
  std::string_view next();
  /// The rest of the next line after `key` and a blank.
  std::string_view value(std::string_view key);
  /// The same as an integer, at most the number of entries that the remaining bytes can hold.
  int64_t count(std::string_view key = "count");
  /// Fails when anything follows.
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

}  // namespace heed::detail
