// Open files: repeats interrupted calls, refuses links and pipes.
#include "heed/core/io/file_descriptor.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"

namespace heed::io {
namespace {

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// Fault::file for a path of another kind than `wanted`, "a file" or "a folder".
[[noreturn]] void refuse_kind(const Path& path, mode_t mode, std::string_view wanted) {
  if (!S_ISLNK(mode)) {
    fail(Fault::file, path, " is ", kind_of(mode), ", where heed writes ", wanted,
         ". Remove it, or give it another name.");
  }
  std::error_code ignored;
  const Path target = std::filesystem::read_symlink(path, ignored);
  fail(Fault::file, path, " is a link to ", shown(target.native(), 200), ", where heed writes ", wanted,
       ". It is not followed, since it could lead anywhere. Remove it, or put in its place what it leads to; "
       "the folder that it is in may be a link.");
}

}  // namespace

void refuse(std::string_view what, const Path& path, int code) {
  std::string hint;
  if (code == ENOSPC || code == EDQUOT) hint = " Free some space there, or choose another folder.";
  if (code == EACCES || code == EPERM || code == EROFS)
    hint = " Check its permissions, or choose another place.";
  if (code == ENOENT) hint = " Check the spelling of the path.";
  if (code == EISDIR) hint = " A file is needed here, not a folder.";
  if (code == EFBIG) hint = " The file is larger than this system allows.";
  fail(Fault::file, "cannot ", what, " ", path, ": ", std::strerror(code), ".", hint);
}

Descriptor::Descriptor(const Path& path, int flags, std::string_view what) : path_(path) {
  number_ = again([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (number_ < 0) refuse(what, path, errno);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : path_(std::move(other.path_)), number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  Descriptor moved(std::move(other));  // closes the old file at the end
  std::swap(path_, moved.path_);
  std::swap(number_, moved.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

void Descriptor::close() {
  if (::close(std::exchange(number_, -1)) != 0 && errno != EINTR) refuse("close", path_, errno);
}

struct stat status_of(const Descriptor& file) {
  struct stat found {};
  if (again([&] { return ::fstat(file.number(), &found); }) != 0) refuse("look at", file.path(), errno);
  return found;
}

void read_at(const Descriptor& file, int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const size_t max_bytes = std::min(out.size(), size_t{1} << 30);
    const ssize_t count = again([&] { return ::pread(file.number(), out.data(), max_bytes, offset); });
    if (count < 0) refuse("read", file.path(), errno);
    if (count == 0)
      fail(Fault::data, file.path(), " ends at byte ", offset, ", and was longer when it was opened. ",
           "Another program is writing it: try again when it is done.");
    offset += count;
    out = out.subspan(static_cast<size_t>(count));
  }
}

bool is_absent(int code) { return code == ENOENT || code == ENOTDIR || code == ENAMETOOLONG; }

bool find_status(const Path& path, struct stat& found) {
  if (again([&] { return ::lstat(path.c_str(), &found); }) == 0) return true;
  if (is_absent(errno)) return false;
  refuse("look at", path, errno);
}

Descriptor open_regular(const Path& path, int flags, std::string_view what) {
  check_regular(path);  // before opening, since opening some devices has effects
  Descriptor file(path, flags | O_NOFOLLOW | O_NONBLOCK, what);
  const struct stat found = status_of(file);
  if (!S_ISREG(found.st_mode)) refuse_kind(path, found.st_mode, "a file");
  return file;
}

Descriptor open_to_read(const Path& path) {
  struct stat found {};
  if (again([&] { return ::stat(path.c_str(), &found); }) != 0) refuse("open", path, errno);
  check_readable(path, found);  // before opening, since opening some devices has effects
  Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  check_readable(path, status_of(file));  // another file may have taken its name
  return file;
}

void check_readable(const Path& path, const struct stat& found) {
  if (S_ISREG(found.st_mode)) return;
  if (S_ISDIR(found.st_mode)) fail(Fault::file, "cannot read ", path, ": it is a folder. Name a file in it.");
  fail(Fault::file, "cannot read ", path, ": it is ", kind_of(found.st_mode),
       ", where heed reads a file. Remove it, or put the file in its place.");
}

void check_regular(const Path& path) {
  struct stat found {};
  if (find_status(path, found) && !S_ISREG(found.st_mode)) refuse_kind(path, found.st_mode, "a file");
}

void check_directory(const Path& path) {
  struct stat found {};
  if (find_status(path, found) && !S_ISDIR(found.st_mode)) refuse_kind(path, found.st_mode, "a folder");
}

bool is_there(const Path& path) {
  struct stat found {};
  return find_status(path, found);
}

bool is_own_directory(const Path& path) {
  struct stat found {};
  return find_status(path, found) && S_ISDIR(found.st_mode);
}

std::string random_name() {
  char bytes[8];
  if (again([&] { return ::getrandom(bytes, sizeof bytes, 0); }) != ssize_t{sizeof bytes})
    fail(Fault::file, "cannot get random bytes from the system: ", std::strerror(errno), ".");
  return hexadecimal({bytes, sizeof bytes});
}

}  // namespace heed::io
