// Element types and rounding to bf16.
#include "heed/core/dtype.h"

#include <cmath>
#include <limits>
#include <string>

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("dtype: names, sizes and dispatch agree") {
  const DType all[] = {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64, DType::u8};
  for (DType dtype : all) {
    visit(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      CHECK(dtype_of<T> == dtype);
      CHECK(bytes_of(dtype) == static_cast<int64_t>(sizeof(T)));
    });
  }
  CHECK(std::string(to_string(DType::bf16)) == "bf16");
  CHECK(is_float(DType::bf16));
  CHECK_FALSE(is_float(DType::i32));
}

TEST_CASE("dtype: arithmetic runs in f32 and f64 only") {
  CHECK(visit_float("exp", DType::f64, [](auto type) { return sizeof(typename decltype(type)::type); }) == 8);
  CHECK_THROWS_WITH(visit_float("exp", DType::i32, [](auto) {}), containing("exp") && containing("i32"));
}

TEST_CASE("bf16: rounds to the nearest even, keeps infinities and NaN") {
  CHECK(static_cast<float>(bf16(1.F)) == 1.F);
  CHECK(static_cast<float>(bf16(-0.15625F)) == -0.15625F);
  CHECK(static_cast<float>(bf16(1.F + 0x1p-8F)) == 1.F);              // a tie goes to the even neighbour
  CHECK(static_cast<float>(bf16(1.F + 0x1.8p-7F)) == 1.F + 0x1p-6F);  // here upwards
  CHECK(static_cast<float>(bf16(1.F + 0x1.01p-8F)) == 1.F + 0x1p-7F);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(bf16(infinity)) == infinity);
  CHECK(static_cast<float>(bf16(-infinity)) == -infinity);
  CHECK(static_cast<float>(bf16(std::numeric_limits<float>::max())) == infinity);
  CHECK(std::isnan(static_cast<float>(bf16(std::nanf("")))));
  CHECK(std::isnan(static_cast<float>(bf16(std::bit_cast<float>(0x7f800001U)))));
}
