// Which tensors a kernel takes.
#include "heed/core/launch.h"

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("launch: a kernel for a device refuses tensors that lie elsewhere, by their number") {
  for (const Device device : devices()) {
    if (device == Device::cpu) continue;
    const Tensor here = Tensor::zeros(Shape{3}), there = Tensor::zeros(Shape{3}, DType::f32, device);
    const std::string elsewhere = text(" of a kernel for ", to_string(device), " lies on cpu.");
    CHECK_THROWS_WITH(launch<kernel::Copy>(device, here, there), containing("argument 1" + elsewhere));
    CHECK_THROWS_WITH(launch<kernel::Copy>(device, there, here), containing("argument 2" + elsewhere));
    launch<kernel::Copy>(device, Tensor::zeros(Shape{3}, DType::f32, device), there);
    CHECK(there.to_host() == std::vector<float>(3));
  }
}
