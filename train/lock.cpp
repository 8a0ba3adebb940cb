// The lock of a run folder, by flock.
#include "train/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "core/io.h"
#include "core/json.h"

namespace heed {
namespace {

constexpr int64_t largest_note = 64 << 10;

/// Opens and locks the file; -1 when somebody else holds it.
int try_lock(const Path& path, int flags) {
  int file = -1;
  do {
    file = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EINTR);
  if (file < 0) fail(Fault::file, "cannot open the lock ", path, ": ", std::strerror(errno), ".");
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const int code = errno;
    ::close(file);
    if (code == EWOULDBLOCK) return -1;
    fail(Fault::file, "cannot lock ", path, ": ", std::strerror(code), ". Does its file system know locks?");
  }
  return file;
}

std::string clock_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M", &local);
  return buffer;
}

/// The holder writes its note just after it has the lock: for a moment there may be none, or that of an
/// earlier one.
std::string described(const Path& path) {
  try {
    const Json note = parse_json(io::read(path, largest_note), "lock");
    std::string since = note.at("since").text();
    const std::string today = clock_now().substr(0, 10);
    if (since.starts_with(today)) since.erase(0, today.size() + 1);
    return text("pid ", note.at("pid").integer(), " since ", since,
                " (started by: ", note.at("command").text(), ")");
  } catch (const Error&) {
    return "another process";
  }
}

void write_note(int file, std::string_view command) {
  const std::string note =
      Json::object(
          {{"pid", static_cast<int64_t>(::getpid())}, {"since", clock_now()}, {"command", Json(command)}})
          .dump() +
      "\n";
  // A note that cannot be written makes the lock less talkative, not less of a lock.
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, note.data(), note.size(), 0) < 0) return;
}

}  // namespace

RunLock::RunLock(const Path& run, std::string_view command) {
  const Path path = run / "lock";
  // Somebody who only asks who holds the lock has it for a moment.
  constexpr int attempts = 10;
  for (int attempt = 0; file_ < 0 && attempt < attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    file_ = try_lock(path, O_RDWR | O_CREAT);
  }
  if (file_ < 0) {
    fail(Fault::busy, run, " is in use by ", described(path), ". Choose another --name, or stop that one.");
  }
  write_note(file_, command);
}

RunLock::RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  if (this != &other) {
    if (file_ >= 0) ::close(file_);
    file_ = std::exchange(other.file_, -1);
  }
  return *this;
}

RunLock::~RunLock() {
  if (file_ >= 0) ::close(file_);
}

std::optional<std::string> run_holder(const Path& run) {
  const Path path = run / "lock";
  if (!io::exists(path)) return std::nullopt;
  const int file = try_lock(path, O_RDONLY);
  if (file < 0) return described(path);
  ::close(file);
  return std::nullopt;
}

}  // namespace heed
