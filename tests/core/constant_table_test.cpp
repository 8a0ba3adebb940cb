// Constant tables: their values, and caching on a device.
#include "heed/core/constant_table.h"

#include "heed/tests/any_device.h"

using namespace heed;

TEST_CASE("table: numbers and types are those of the list, on every device") {
  const Device device = any_device();
  const std::vector<double> values{0.1, -2.5, 3, 1e-3};
  const Tensor x = constant_table<double>(values, Shape{2, 2}, device, DType::f32);
  CHECK(x.device() == device);
  CHECK(x.dtype() == DType::f32);
  CHECK(x.shape() == Shape{2, 2});
  const std::vector<double> found = x.to_doubles();
  for (size_t n = 0; n < values.size(); ++n)
    CHECK(found[n] == static_cast<double>(static_cast<float>(values[n])));
  CHECK(constant_table<int32_t>(std::vector<int32_t>{}, Shape{0}, device).size() == 0);
}

TEST_CASE("table: a device gives the same memory for the same numbers, and other memory for others") {
  const Device device = any_device();
  if (device == Device::cpu) return;
  const std::vector<int32_t> zeros(6, 0), others{0, 0, 0, 0, 0, 1};
  const Tensor x = constant_table<int32_t>(zeros, Shape{6}, device);
  const Tensor again = constant_table<int32_t>(zeros, Shape{2, 3}, device);
  CHECK(x.storage() == again.storage());
  CHECK(again.shape() == Shape{2, 3});
  CHECK(constant_table<int32_t>(others, Shape{6}, device).storage() != x.storage());
  const Tensor floats = constant_table<float>(std::vector<float>(6, 0.F), Shape{6}, device);
  CHECK(floats.storage() != x.storage());  // although the bytes are equal
  CHECK(floats.dtype() == DType::f32);
}

TEST_CASE("table: a device forgets the tables that were used longest ago") {
  const Device device = any_device();
  if (device == Device::cpu) return;
  std::vector<int32_t> large(size_t{4} << 20);  // 16 MiB
  const auto made = [&](int32_t which) {
    large[0] = which;
    return constant_table<int32_t>(large, Shape{int64_t{4} << 20}, device).storage();
  };
  const std::weak_ptr<Storage> first = made(0), second = made(1);
  for (int32_t n = 2; n < 18; ++n) {
    made(n);
    made(0);
  }
  CHECK_FALSE(first.expired());
  CHECK(second.expired());
}
