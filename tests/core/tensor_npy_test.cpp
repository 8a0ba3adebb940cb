// Tests core/tensor_npy.h.
#include "heed/core/tensor_npy.h"

#include "heed/tests/any_device.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

namespace heed {
namespace {

TEST_CASE("tensor npy: what is written is read back, of every dtype, from views, on every device") {
  const DefaultDevice device(any_device());
  const Scratch scratch;
  const Path file = scratch / "x.npy";
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    INFO(to_string(dtype));
    const Tensor x = Tensor::full(Shape{2, 3}, 7, dtype);
    write_npy(file, view::transpose(x, 0, 1));
    const Tensor y = read_npy_tensor(file);
    CHECK((y.shape() == Shape{3, 2} && y.dtype() == dtype && y.device() == default_device));
    CHECK(y.to_doubles() == std::vector<double>(6, 7));
  }
  const Tensor numbers = Tensor::from({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  write_npy(file, view::transpose(numbers, 0, 1));
  CHECK(read_npy_tensor(file).to_host() == std::vector<float>{1, 4, 2, 5, 3, 6});
  write_npy(file, Tensor::full(Shape{}, 2.5, DType::f64));
  CHECK(read_npy_tensor(file).item() == 2.5);
}

TEST_CASE("tensor npy: bf16 and more dimensions than a tensor has are refused") {
  const Scratch scratch;
  const Path file = scratch / "x.npy";
  CHECK_THROWS_WITH(write_npy(file, Tensor(Shape{2}, DType::bf16)), containing("bf16"));
  write_npy(file, Array::of<float>({1, 1, 1, 1, 1, 1, 1}, std::vector<float>{1}));
  CHECK_THROWS_WITH(read_npy_tensor(file), containing("holds 7 dimensions"));
}

}  // namespace
}  // namespace heed
