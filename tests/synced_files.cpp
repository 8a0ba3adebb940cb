// fsync and syncfs of the test programs, which replace the C library's at link time.
#include "heed/tests/synced_files.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace heed {
namespace {

std::mutex door;
std::vector<std::string> noted;

int note(long call, int handle, const char* before) {
  char path[4096];
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(handle)).c_str(), path, sizeof path);
  {
    const std::lock_guard<std::mutex> lock(door);
    if (length > 0) noted.push_back(before + std::string(path, static_cast<size_t>(length)));
  }
  return static_cast<int>(::syscall(call, handle));
}

}  // namespace

std::vector<std::string> synced() {
  const std::lock_guard<std::mutex> lock(door);
  return std::exchange(noted, {});
}

}  // namespace heed

extern "C" int fsync(int handle) { return heed::note(SYS_fsync, handle, ""); }
extern "C" int syncfs(int handle) noexcept { return heed::note(SYS_syncfs, handle, "all of "); }
