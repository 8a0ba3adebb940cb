// Locks the folder of a run, and reads and writes the note about the holder of the lock.
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

/// The local time: "2026-11-26 14:02".
std::string local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  ::localtime_r(&now, &fields);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M", &fields);
  return buffer;
}

/// Describes the holder of a lock by its note. A holder writes the note just after locking, so for a moment
/// it may be missing or that of an earlier holder.
std::string describe_holder(const Path& lock_file) {
  try {
    const Json note = parse_json(io::read(lock_file, max_note_bytes), "lock");
    std::string since = note.at("since").text();
    const std::string today = local_time_now().substr(0, 10);
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
  constexpr int max_attempts = 10;
  for (int attempt = 0; !lock_ && attempt < max_attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    lock_ = io::FileLock::try_lock(path, /*create=*/true);
  }
  if (!lock_)
    fail(Fault::busy, run, " is in use by ", describe_holder(path), ". Choose another ",
         advice("--name", "name", "FitOptions::folder"), ", or stop that one.");
  const Json note = Json::object(
      {{"pid", static_cast<int64_t>(::getpid())}, {"since", local_time_now()}, {"command", Json(command)}});
  lock_->note(note.dump() + "\n");
}

std::optional<std::string> run_holder(const Path& run) {
  const Path path = run / "lock";
  if (!io::exists(path) || io::FileLock::try_lock(path, /*create=*/false)) return std::nullopt;
  return describe_holder(path);
}

}  // namespace heed
