// Counts of bits at their ends. On devices buds of trees rest on them: tree_buds_test.cpp.
#include "heed/core/bits.h"

#include <tuple>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("bits: of nothing, of one, around powers of two and of all") {
  constexpr uint64_t high = uint64_t{1} << 63;
  for (const auto& [x, zeros, width, power] : {std::tuple{uint64_t{0}, 64, 0, uint64_t{1}},
                                               {1, 0, 1, 1},
                                               {2, 1, 2, 2},
                                               {3, 0, 2, 4},
                                               {4, 2, 3, 4},
                                               {5, 0, 3, 8},
                                               {96, 5, 7, 128},
                                               {high - 1, 0, 63, high},
                                               {high, 63, 64, high}}) {
    CAPTURE(x);
    CHECK(trailing_zeros(x) == zeros);
    CHECK(bit_width(x) == width);
    CHECK(power_of_two(x) == power);
  }
}
