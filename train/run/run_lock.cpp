// The lock of a run folder, and the note about its holder.
#include "heed/train/run/run_lock.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

constexpr int64_t max_note_bytes = 64 << 10;

std::string clock_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M", &local);
  return buffer;
}

/// Describes the holder by its note. The holder writes the note just after locking, so for a moment it may be
/// missing or old.
std::string described(const Path& path) {
  try {
    const Json note = parse_json(io::read(path, max_note_bytes), "lock");
    std::string since = note.at("since").text();
    const std::string today = clock_now().substr(0, 10);
    if (since.starts_with(today)) since.erase(0, today.size() + 1);
    return text("pid ", note.at("pid").integer(), " since ", shown(since),
                " (started by: ", shown(note.at("command").text(), 200), ")");
  } catch (const Error&) {
    return "another process";
  }
}

}  // namespace

RunLock::RunLock(const Path& run, std::string_view command) {
  const Path path = run / "lock";
  // run_holder() of another process takes the lock for a moment, hence the retries.
  constexpr int attempts = 10;
  for (int attempt = 0; !lock_ && attempt < attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock_ = io::FileLock::try_lock(path, true);
  }
  if (!lock_)
    fail(Fault::busy, run, " is in use by ", described(path), ". Choose another ",
         advice("--name", "name", "FitOptions::folder"), ", or stop that one.");
  lock_->note(
      Json::object(
          {{"pid", static_cast<int64_t>(::getpid())}, {"since", clock_now()}, {"command", Json(command)}})
          .dump() +
      "\n");
}

std::optional<std::string> run_holder(const Path& run) {
  const Path path = run / "lock";
  if (!io::exists(path) || io::FileLock::try_lock(path, false)) return std::nullopt;
  return described(path);
}

}  // namespace heed
