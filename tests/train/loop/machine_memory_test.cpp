// Memory limits from free memory: the machine's for CPU tensors, the GPU's for its own.
#include "heed/train/loop/machine_memory.h"

#include "heed/core/gpu_info.h"
#include "heed/core/memory/storage.h"
#include "heed/tests/any_device.h"

using namespace heed;

namespace {

constexpr int64_t mib = int64_t{1} << 20;
constexpr int64_t crowd = int64_t{1} << 24;  // so many processes that each has next to nothing

/// Nothing is cached before, and there are no caps any more.
struct Uncapped {
  Uncapped() { all(release_cached); }
  ~Uncapped() {
    all([](Device device) { cap_memory(0, device); });
  }
  static void all(const std::function<void(Device)>& what) {
    for (const Device device : devices()) what(device);
  }
};

Tensor of_mib(int64_t count, Device device) { return Tensor(Shape{count << 20}, DType::u8, device); }

}  // namespace

TEST_CASE("machine memory: on the CPU, a share of the machine's is the cap") {
  const Uncapped uncapped;
  cap_to_free_memory({.sharing = crowd});
  CHECK_THROWS_WITH(of_mib(40, Device::cpu), containing("memory of the machine: 42 MB are asked for"));
  cap_to_free_memory();
  CHECK_NOTHROW(of_mib(40, Device::cpu));
}

TEST_CASE("machine memory: a cap that was given stays") {
  const Uncapped uncapped;
  const DefaultDevice device(any_device());
  cap_memory(memory_use().reserved + 10 * mib);
  cap_to_free_memory({.device_given = true});
  CHECK_NOTHROW(of_mib(5, default_device));
  CHECK_THROWS_AS(of_mib(40, default_device), Error);
}

TEST_CASE("machine memory: the GPU's free memory caps its tensors, the machine's those of the CPU") {
  if (devices().size() < 2) {
    WARN("no device: " << why_no_cuda());
    return;
  }
  const Uncapped uncapped;
  const DefaultDevice device(Device::cuda);
  const int64_t expected = memory_use().reserved + usable_gpu_bytes(gpu_free_bytes());
  cap_to_free_memory({.sharing = crowd});
  CHECK_NOTHROW(of_mib(40, Device::cuda));
  CHECK_THROWS_WITH(of_mib(40, Device::cpu), containing("memory of the machine"));
  CHECK_THROWS_WITH(of_mib(int64_t{1} << 22, Device::cuda),
                    containing("memory of the GPU") && containing("the cap is " + bytes_text(expected)));
}

TEST_CASE("machine memory: of a GPU's, something is left for driver and libraries") {
  CHECK(usable_gpu_bytes(0) == 0);
  CHECK(usable_gpu_bytes(100 * mib) == 0);
  CHECK(usable_gpu_bytes(8192 * mib) == (8192 - 256 - 128) * mib);
}

TEST_CASE("machine memory: what was freed is malloc's to give again") {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::vector<std::string> blocks(200, std::string(10'000, 'x'));
  const int64_t before = free_heap_bytes();
  // Every second one: its neighbours keep it from being given to the system.
  for (size_t i = 0; i < blocks.size(); i += 2) std::string().swap(blocks[i]);
  CHECK(free_heap_bytes() >= before + 100 * 10'000);
#endif
}
