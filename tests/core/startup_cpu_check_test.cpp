// Which instruction sets a CPU lacks.
#include "heed/core/startup_cpu_check.h"

#include <string>

#include "heed/core/isa.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("instruction check: this CPU has what the tests were compiled with") {
  REQUIRE(missing_instruction(needed_instructions) == nullptr);
  if constexpr (!all_isas) REQUIRE(to_string(isa()) == std::string("native"));
}

#if defined(__x86_64__)
TEST_CASE("instruction check: names the first set that is missing") {
  const char* const none[] = {nullptr};
  REQUIRE(missing_instruction(none) == nullptr);
  const char* const unknown[] = {"sse4.2", "abacus", "slate", nullptr};
  REQUIRE(missing_instruction(unknown) == std::string("abacus"));
}
#endif
