// Catch2 under one name, whether the system has version 2 or version 3.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace heed {

/// A matcher for `CHECK_THROWS_WITH(f(), containing("heads = 6"))`: the text contains this part.
inline auto containing(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

}  // namespace heed
