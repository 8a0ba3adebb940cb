// Reads free memory from /proc, /sys and the limits of the process.
#include "heed/train/loop/machine_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "heed/core/gpu_info.h"
#include "heed/core/io/files.h"
#include "heed/core/memory/heap_cap.h"
#include "heed/core/memory/storage.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

// Above any real memory, and far enough below the largest integer that sums with it do not overflow.
constexpr int64_t unlimited = int64_t{1} << 60;

/// The number that follows a word in a file; none when the file or the word is missing.
std::optional<int64_t> number_after(const Path& path, const std::string& word) {
  try {
    const std::string metadata = io::read(path);
    size_t at = word.empty() ? 0 : metadata.find(word);
    if (at == std::string::npos) return std::nullopt;
    at = metadata.find_first_not_of(" \t", at + word.size());
    int64_t value = 0;
    if (at == std::string::npos ||
        std::from_chars(metadata.data() + at, metadata.data() + metadata.size(), value).ec != std::errc())
      return std::nullopt;
    return value;
  } catch (const Error&) {
    return std::nullopt;
  }
}

int64_t of_this_process(const char* word) {
  return number_after("/proc/self/status", word).value_or(0) * 1024;
}

/// Free memory of a control group in bytes. Its file cache counts as free.
int64_t left_by_group() {
  const Path group = "/sys/fs/cgroup";
  const auto limit = number_after(group / "memory.max", "");
  const auto used = number_after(group / "memory.current", "");
  if (!limit || !used) return unlimited;
  return *limit - *used + number_after(group / "memory.stat", "inactive_file ").value_or(0);
}

int64_t left_by_limit(__rlimit_resource resource, const char* word) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return static_cast<int64_t>(limit.rlim_cur) - of_this_process(word);
}

/// Bytes that limits on addresses leave beside the workspace of OpenBLAS, which takes 128 MiB for each thread
/// at its first product, and retries for ever where it does not get them.
int64_t left_beside_blas() {
  constexpr int64_t workspace = int64_t{129} << 20;
  return std::min(left_by_limit(RLIMIT_AS, "VmSize:"), left_by_limit(RLIMIT_DATA, "VmData:")) -
         threads() * workspace;
}

}  // namespace

int64_t resident_bytes() { return of_this_process("VmRSS:"); }
int64_t free_heap_bytes() {
#ifdef __GLIBC__
  return static_cast<int64_t>(mallinfo2().fordblks);
#else
  return 0;
#endif
}
int64_t peak_resident_bytes() { return of_this_process("VmHWM:"); }

int64_t free_bytes(const Path& metadata) {
  const auto machine = number_after(metadata, "MemAvailable:");
  const int64_t left = std::min({machine ? *machine * 1024 : unlimited, left_by_group(),
                                 left_by_limit(RLIMIT_AS, "VmSize:"), left_by_limit(RLIMIT_DATA, "VmData:")});
  return std::max<int64_t>(left, 0);
}

int64_t for_tensors(int64_t gpu_free) {
  constexpr int64_t libraries = int64_t{256} << 20;
  return std::max<int64_t>(gpu_free - libraries - gpu_free / 64, 0);
}

void cap_to_free_memory(const FreeMemory& free) {
  const auto cap = [&](Device device, int64_t more) {
    if (device == default_device && free.device_given) return;
    // 0 would mean no cap.
    const int64_t held = memory_use(device).reserved + (device == Device::cpu ? heap_bytes() : 0);
    cap_memory(std::max<int64_t>(held + more, 1), device);
  };
  const int64_t beside_blas = left_beside_blas();
  if (beside_blas <= 0)
    fail(Fault::memory, "memory of the machine: a limit on this process (ulimit -v or -d) leaves ",
         bytes_text(free_bytes()), ". Largest users: workspaces of matrix products, held by each of ",
         threads(), " threads, 129 MiB. Try a higher limit, or fewer --threads.");
  cap(Device::cpu, std::min(free_bytes(), beside_blas) / free.sharing);
  if (default_device == Device::cuda) cap(Device::cuda, for_tensors(gpu_free_bytes()));
}

}  // namespace heed
