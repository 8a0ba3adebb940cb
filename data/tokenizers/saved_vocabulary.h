// Strict readers of saved vocabularies: line by line, and token to id in JSON.
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

/// The names of a JSON object's members in the order of their values. The values must be the numbers from 0
/// on, each once; else Fault::data with a message that begins with `place` and ends with `advice`.
std::vector<std::string> tokens_by_id(const Json::Members& members, std::string_view place,
                                      std::string_view advice);

}  // namespace heed::detail
