// Files by checked POSIX calls.
#include "heed/core/io/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "heed/core/io/atomic_write.h"
#include "heed/core/io/file_descriptor.h"
#include "heed/core/io/gzip.h"
#include "heed/core/io/no_follow_files.h"

namespace heed::io {
namespace {

/// stat() of what the path, or the link of that name, leads to; false with errno where it fails.
bool stat_of(const Path& path, struct stat& found) {
  return again([&] { return ::stat(path.c_str(), &found); }) == 0;
}

/// stat(): false where nothing has that name; Fault::file where the call fails otherwise.
bool find_target(const Path& path, struct stat& found) {
  if (stat_of(path, found)) return true;
  if (is_absent(errno)) return false;
  refuse("look at", path, errno);
}

/// Reads up to `count` bytes from the current position; fewer only at the end of the file.
size_t read_up_to(const Descriptor& file, char* buffer, size_t count) {
  size_t total = 0;
  while (total < count) {
    const size_t max_bytes = std::min(count - total, size_t{1} << 30);
    const ssize_t bytes_read = again([&] { return ::read(file.number(), buffer + total, max_bytes); });
    if (bytes_read < 0) refuse("read", file.path(), errno);
    if (bytes_read == 0) break;
    total += static_cast<size_t>(bytes_read);
  }
  return total;
}

/// Fault::data where `size` exceeds a `cap` above 0.
void check_cap(const Path& path, int64_t size, int64_t cap) {
  if (cap > 0 && size > cap) {
    fail(Fault::data, path, " is larger than the ", cap,
         " bytes that are accepted here. Is it the right file?");
  }
}

/// Reads an open file to its end.
std::string read_open(const Descriptor& file, int64_t cap) {
  const Path& path = file.path();
  const struct stat found = status_of(file);
  if (S_ISDIR(found.st_mode)) check_readable(path, found);
  check_cap(path, found.st_size, cap);
  // The size is a hint only: it is 0 for pipes and /proc, and a file may grow meanwhile.
  std::string bytes(static_cast<size_t>(std::max<int64_t>(found.st_size, 0)), '\0');
  const size_t count = read_up_to(file, bytes.data(), bytes.size());
  bool is_at_end = count < bytes.size();
  bytes.resize(count);
  for (char buffer[65536]; !is_at_end;) {
    const size_t more = read_up_to(file, buffer, sizeof buffer);
    bytes.append(buffer, more);
    check_cap(path, static_cast<int64_t>(bytes.size()), cap);
    is_at_end = more < sizeof buffer;
  }
  return bytes;
}

/// Inflates the bytes of a file if they are gzip; returns other bytes unchanged.
std::string inflated(std::string bytes, const Path& path, int64_t cap) {
  if (is_gzip(bytes)) return inflate_text(bytes, cap, path.string());
  check_cap(path, static_cast<int64_t>(bytes.size()), cap);
  return bytes;
}

/// Follows links at the end of the path; the result need not exist.
Path without_links(Path path) {
  constexpr int max_links = 40;  // the limit of Linux
  struct stat found {};
  for (int links = 0; find_status(path, found) && S_ISLNK(found.st_mode); ++links) {
    if (links == max_links) refuse("write", path, ELOOP);
    std::error_code code;
    const Path target = std::filesystem::read_symlink(path, code);
    if (code) refuse("read the link", path, code.value());
    path = folder_of(path) / target;  // an absolute target replaces the whole path
  }
  return path;
}

}  // namespace

std::string read(const Path& path, int64_t cap) { return read_open(open_to_read(path), cap); }

void read_pieces(const Path& path, const std::function<void(std::string_view piece)>& f) {
  const Descriptor file = open_to_read(path);
  std::string buffer(size_t{1} << 20, '\0');
  while (const size_t count = read_up_to(file, buffer.data(), buffer.size()))
    f(std::string_view(buffer).substr(0, count));
}

std::string read_input(const Path& path, int64_t cap) {
  const Descriptor file(path, O_RDONLY, "open");
  const bool regular = S_ISREG(status_of(file).st_mode);
  return read_open(file, cap == 0 && !regular ? stream_cap : cap);  // a device may have no end
}

std::string read_text(const Path& path, int64_t cap) { return inflated(read_input(path), path, cap); }

std::string read_regular_text(const Path& path, int64_t cap) { return inflated(read(path), path, cap); }

void write(const Path& path, std::string_view bytes) {
  struct stat found {};
  if (stat_of(path, found) && !S_ISREG(found.st_mode)) {
    if (S_ISDIR(found.st_mode))
      fail(Fault::file, "cannot write ", path, ": it is a folder. Name a file in it.");
    write_plain(path, std::span(&bytes, 1));  // a device or a pipe cannot be replaced by a file
    return;
  }
  replace_file(without_links(path), bytes);
}

void write_plain(const Path& path, std::span<const std::string_view> parts, bool synced) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
  for (const std::string_view part : parts) write_all(file, part);
  if (synced) sync(file);
  file.close();
}

Appender::Appender(const Path& path) {
  constexpr int flags = O_RDWR | O_APPEND;
  const bool is_new = !is_there(path);
  file_ = open_regular(path, is_new ? flags | O_CREAT : flags, "open");
  if (is_new) sync_directory(folder_of(path));
}

void Appender::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  raw(whole);
}

void Appender::raw(std::string_view bytes) {
  if (file_.number() < 0) fail(Fault::internal, "append: no file is open");
  write_all(file_, bytes);
}

void Appender::sync() {
  if (file_.number() >= 0) io::sync(file_);
}

int64_t truncate_after(const Path& path, const std::function<bool(std::string_view line)>& is_past) {
  check_regular(path);
  if (!io::exists(path)) return 0;
  const std::string bytes = read(path);
  int64_t lines = 0;
  size_t kept = 0;  // bytes of the lines that remain
  while (kept < bytes.size()) {
    const size_t end = bytes.find('\n', kept);
    if (end == std::string::npos) break;
    if (is_past(std::string_view(bytes).substr(kept, end - kept))) break;
    kept = end + 1;
    ++lines;
  }
  if (kept < bytes.size()) write_own(path, std::string_view(bytes).substr(0, kept));
  return lines;
}

void truncate(const Path& path, int64_t size) {
  Descriptor file = open_regular(path, O_WRONLY, "open");
  if (again([&] { return ::ftruncate(file.number(), size); }) != 0) refuse("shorten", path, errno);
  sync(file);
  file.close();
}

void make_directories(const Path& path) {
  if (path.empty() || io::is_directory(path)) return;
  const Path parent = folder_of(path);
  if (parent != path && parent != ".") make_directories(parent);
  if (again([&] { return ::mkdir(path.c_str(), 0777); }) == 0) return sync_directory(parent);
  const int code = errno;
  if (code == EEXIST && io::is_directory(path)) return;  // another process has created it
  if (code == EEXIST) fail(Fault::file, "cannot create the folder ", path, ": a file of that name is there.");
  refuse("create the folder", path, code);
}

void make_directory(const Path& path) {
  if (!claim_directory(path)) check_directory(path);
}

void rename_directory(const Path& from, const Path& to) {
  if (again([&] { return ::rename(from.c_str(), to.c_str()); }) != 0)
    refuse(text("rename ", from, " to"), to, errno);
  sync_directory(folder_of(to));
}

void replace_directory(const Path& from, const Path& to) {
  if (!io::is_directory(to)) return rename_directory(from, to);
  const auto exchange = [&] {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE);
  };
  if (again(exchange) == 0) {
    sync_directory(folder_of(to));
    return io::remove_all(from);
  }
  if (errno != EINVAL && errno != ENOSYS) refuse(text("exchange ", from, " for"), to, errno);
  const Path old = text(from, ".old");
  rename_directory(to, old);
  rename_directory(from, to);
  io::remove_all(old);
}

void sync_directory(const Path& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY, "open the folder");
  sync(folder);
}

void sync_all(const Path& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY, "open the folder");
  if (again([&] { return ::syncfs(folder.number()); }) != 0) refuse("sync", path, errno);
}

bool claim_directory(const Path& path) {
  if (again([&] { return ::mkdir(path.c_str(), 0777); }) == 0) {
    sync_directory(folder_of(path));
    return true;
  }
  if (errno == EEXIST) return false;
  refuse("create the folder", path, errno);
}

DirectoryLock::DirectoryLock(const Path& folder, const std::function<void()>& waiting)
    : folder_(folder, O_RDONLY | O_DIRECTORY, "open the folder") {
  if (again([&] { return ::flock(folder_.number(), LOCK_EX | LOCK_NB); }) == 0 || errno != EWOULDBLOCK)
    return;
  if (waiting) waiting();
  again([&] { return ::flock(folder_.number(), LOCK_EX); });
}

std::vector<Path> list(const Path& path) {
  std::vector<Path> names;
  const auto close = [](DIR* open) { ::closedir(open); };
  std::unique_ptr<DIR, decltype(close)> folder(nullptr, close);
  do {
    folder.reset(::opendir(path.c_str()));
  } while (folder == nullptr && errno == EINTR);
  if (folder == nullptr) {
    if (errno == ENOENT) return names;
    refuse("list the folder", path, errno);
  }
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno == 0) break;
    if (entry == nullptr && errno != EINTR) refuse("list the folder", path, errno);
    if (entry == nullptr) continue;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const Path& path) {
  struct stat found {};
  return find_target(path, found);
}

bool is_directory(const Path& path) {
  struct stat found {};
  return find_target(path, found) && S_ISDIR(found.st_mode);
}

int64_t size(const Path& path) {
  struct stat found {};
  if (!stat_of(path, found)) refuse("look at", path, errno);
  check_readable(path, found);
  return found.st_size;
}

void remove_all(const Path& path) {
  std::error_code code;
  do {
    std::filesystem::remove_all(path, code);
  } while (code == std::errc::interrupted);
  if (code) refuse("remove", path, code.value());
}

void remove_empty(const Path& folder) {
  again([&] { return ::rmdir(folder.c_str()); });
}

void hold_standard_streams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // open() returns the smallest free number, which is this one. With the opposite mode, uses stay errors.
    if (::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number)
      refuse("open", "/dev/null", errno);
  }
}

}  // namespace heed::io
