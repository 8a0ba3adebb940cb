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
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

// Stands for no limit: above any real memory, and small enough that sums with it do not overflow.
constexpr int64_t unlimited = int64_t{1} << 60;

/// The number that follows a word in a file, or with an empty word the first one; none where it is missing.
std::optional<int64_t> number_after(const Path& path, const std::string& word) {
  try {
    const std::string content = io::read(path);
    size_t at = word.empty() ? 0 : content.find(word);
    if (at == std::string::npos) return std::nullopt;
    at = content.find_first_not_of(" \t", at + word.size());
    int64_t number = 0;
    if (at == std::string::npos ||
        std::from_chars(content.data() + at, content.data() + content.size(), number).ec != std::errc())
      return std::nullopt;
    return number;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// An entry of this process's status, which the system gives in KiB, in bytes; 0 where it is missing.
int64_t status_bytes(const char* entry) {
  return number_after("/proc/self/status", entry).value_or(0) * 1024;
}

/// Free bytes of this process's control group. Its file cache counts as free.
int64_t left_by_control_group() {
  const Path group = "/sys/fs/cgroup";
  const auto limit = number_after(group / "memory.max", "");
  const auto used = number_after(group / "memory.current", "");
  if (!limit || !used) return unlimited;
  return *limit - *used + number_after(group / "memory.stat", "inactive_file ").value_or(0);
}

/// Bytes that a limit of the process leaves; `entry` of its status is the bytes used.
int64_t left_by_limit(__rlimit_resource resource, const char* entry) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  return static_cast<int64_t>(limit.rlim_cur) - status_bytes(entry);
}

/// Bytes that limits on address space leave beside the workspaces of OpenBLAS: it allocates 128 MiB for each
/// thread at the thread's first matrix product, and retries for ever where it does not get them.
int64_t left_beside_blas() {
  constexpr int64_t workspace = int64_t{129} << 20;  // 128 MiB and what the allocation adds
  return std::min(left_by_limit(RLIMIT_AS, "VmSize:"), left_by_limit(RLIMIT_DATA, "VmData:")) -
         threads() * workspace;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t free_heap_bytes() {
#ifdef __GLIBC__
  return static_cast<int64_t>(mallinfo2().fordblks);
#else
  return 0;
#endif
}
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

int64_t free_bytes(const Path& metadata) {
  const auto machine = number_after(metadata, "MemAvailable:");
  const int64_t left = std::min({machine ? *machine * 1024 : unlimited, left_by_control_group(),
                                 left_by_limit(RLIMIT_AS, "VmSize:"), left_by_limit(RLIMIT_DATA, "VmData:")});
  return std::max<int64_t>(left, 0);
}

int64_t usable_gpu_bytes(int64_t gpu_free) {
  constexpr int64_t libraries = int64_t{256} << 20;
  return std::max<int64_t>(gpu_free - libraries - gpu_free / 64, 0);
}

void cap_to_free_memory(const FreeMemory& free) {
  const auto cap = [&](Device device, int64_t free_on_device) {
    if (device == default_device && free.device_given) return;
    const int64_t held = memory_use(device).reserved + (device == Device::cpu ? heap_bytes() : 0);
    constexpr int64_t min_cap = 1;  // 0 would mean no cap
    cap_memory(std::max(held + free_on_device, min_cap), device);
  };
  const int64_t beside_blas = left_beside_blas();
  if (beside_blas <= 0)
    fail(Fault::memory, "memory of the machine: a limit on this process (ulimit -v or -d) leaves ",
         bytes_text(free_bytes()), ". Largest users: workspaces of matrix products, held by each of ",
         threads(), " threads, 129 MiB. Try a higher limit, or fewer ",
         advice("--threads.", "threads: set_threads()."));
  cap(Device::cpu, std::min(free_bytes(), beside_blas) / free.sharing);
  if (default_device == Device::cuda) cap(Device::cuda, usable_gpu_bytes(gpu_free_bytes()));
}

}  // namespace heed
