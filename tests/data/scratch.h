// What the tests of this folder share besides a folder that goes away: the real data, and refusals.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "core/io.h"
#include "data/shuffle.h"
#include "tests/catch.h"
#include "tests/real_data.h"
#include "tests/scratch.h"

namespace heed {

/// The text of the Error that `action` must throw, of this kind.
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

/// Damages bytes in one of many ways, chosen by the number: a flip, a cut, a doubled or removed piece.
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

/// Whether the action either succeeds or refuses its input as bad data; anything else fails the test.
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
