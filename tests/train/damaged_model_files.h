// What every reader of model files does with damaged ones.
#pragma once

#include <functional>
#include <string>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

namespace heed {

/// Reads 5000 copies of a file with one to three changed bytes before `end`, and copies that are cut; each is
/// read or refused as bad data or bad numbers. Returns the number of those that were refused.
inline int64_t refused_damages(const std::string& good, size_t end,
                               const std::function<void(const std::string&)>& read) {
  Rng rng(1);
  int64_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int64_t changes = 1 + rng.below(3); changes > 0; --changes)
      bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(end)))] = static_cast<char>(rng.below(256));
    if (i % 10 == 0) bytes.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size()))));
    try {
      read(bytes);
    } catch (const Error& error) {
      ++refused;
      if (error.fault() != Fault::data && error.fault() != Fault::numeric) FAIL_CHECK(error.what());
    }
  }
  return refused;
}

/// Checks that `read` refuses the bytes as bad data, for this reason.
inline void check_file_refused(const std::string& bytes, const std::function<void(const std::string&)>& read,
                               const std::string& reason) {
  INFO(reason);
  CHECK(fault_of([&] { read(bytes); }) == Fault::data);
  CHECK_THROWS_WITH(read(bytes), containing(reason));
}

}  // namespace heed
