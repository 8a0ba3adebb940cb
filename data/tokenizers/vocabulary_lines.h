// The lines of a saved vocabulary, read strictly.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/error.h"

namespace heed::detail {

/// Reads the bytes of a saved tokenizer line by line; every complaint is Fault::data and names the line.
class SavedLines {
 public:
  /// The first line must be the title. `bytes` and `name` must outlive it.
  SavedLines(std::string_view bytes, std::string_view title, std::string_view name);

  /// The next line, without its end; a last line without one is refused.
  std::string_view next();
  /// What follows `key` and a blank in the next line.
  std::string_view value(std::string_view key);
  /// The same as a number of entries that the bytes left can hold.
  int64_t count(std::string_view key = "count");
  /// Refuses anything that follows.
  void finish();

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
