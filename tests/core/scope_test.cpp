// Scopes: values come back, and functions are called at the end.
#include "heed/core/scope.h"

#include <atomic>
#include <stdexcept>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("scope: a value comes back, nested and after an exception") {
  int value = 1;
  {
    const ScopedValue<int> outer(value, 2);
    CHECK(value == 2);
    try {
      const ScopedValue<int> inner(value, 3);
      CHECK(value == 3);
      throw std::runtime_error("");
    } catch (const std::runtime_error&) {
      CHECK(value == 2);
    }
  }
  CHECK(value == 1);
  std::atomic<int> shared{4};
  {
    const ScopedValue<int, std::atomic<int>> scope(shared, 5);
    CHECK(shared == 5);
  }
  CHECK(shared == 4);
}

TEST_CASE("scope: a function is called at the end, after an exception too") {
  int calls = 0;
  {
    const AtScopeEnd end([&calls] { ++calls; });
  }
  CHECK(calls == 1);
  try {
    const AtScopeEnd end([&calls] { ++calls; });
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
    CHECK(calls == 2);
  }
}
