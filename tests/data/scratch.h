// Helpers of the data tests: errors and damaged bytes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "heed/core/error.h"
#include "heed/core/io/files.h"
#include "heed/data/batching/shuffle.h"
#include "heed/tests/catch.h"
#include "heed/tests/real_data.h"
#include "heed/tests/scratch.h"

namespace heed {

/// The message of the Error that `action` must throw, which must have this fault.
template <class Action>
std::string refusal(Fault fault, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    INFO("the text: " << error.what());
    CHECK(static_cast<int>(error.fault()) == static_cast<int>(fault));
    return error.what();
  }
  FAIL_CHECK("nothing was thrown");
  return {};
}

/// Damages bytes in a way that depends on the number: flips a bit, or truncates, repeats, removes or sets
/// bytes.
inline std::string damaged(std::string bytes, uint64_t number) {
  const auto draw = [&](uint64_t which, size_t below) {
    return static_cast<size_t>(counter_below(7, number, which, static_cast<int64_t>(below)));
  };
  if (bytes.empty()) return bytes;
  const size_t at = draw(0, bytes.size());
  switch (draw(1, 5)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw(2, 8)));
      break;
    case 1:
      bytes.resize(at);
      break;
    case 2:
      bytes.insert(at, bytes.substr(at, 1 + draw(2, 16)));
      break;
    case 3:
      bytes.erase(at, 1 + draw(2, 16));
      break;
    default:
      bytes[at] = static_cast<char>(draw(2, 256));
      break;
  }
  return bytes;
}

/// True if the action succeeds, false if it throws Fault::data; anything else fails the test.
template <class Action>
bool accepted(Action&& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    if (error.fault() != Fault::data) FAIL_CHECK("not a fault of the data: " << error.what());
    return false;
  }
}

}  // namespace heed
