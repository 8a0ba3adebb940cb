// Open files by their descriptors, with checked calls.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "heed/core/error.h"

namespace heed::io {

/// Throws Fault::file with the reason of the errno `code`, and what to do where that is known.
[[noreturn]] void refuse(std::string_view what, const Path& path, int code);

/// Repeats a call that a signal interrupted.
template <class Call>
auto again(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file, closed by the destructor.
class Descriptor {
 public:
  Descriptor() = default;  ///< holds no file
  /// Opens the file by open() with these flags; `what` says in errors what was tried.
  Descriptor(const Path& path, int flags, std::string_view what);
  /// Takes a file that is open already; `path` is for errors.
  Descriptor(int number, const Path& path) : path_(path), number_(number) {}
  Descriptor(Descriptor&& other) noexcept;             ///< `other` holds no file afterwards
  Descriptor& operator=(Descriptor&& other) noexcept;  ///< closes its own file first
  ~Descriptor();

  int number() const { return number_; }      ///< for system calls; -1 where it holds no file
  const Path& path() const { return path_; }  ///< as it was opened
  /// Closes with a check: some file systems report a full disk only here.
  void close();

 private:
  Path path_;
  int number_ = -1;
};

/// fstat() of an open file; Fault::file where it fails.
struct stat status_of(const Descriptor& file);
/// Fills `out` with the bytes of the file from `offset` on. Fault::data where the file ends before.
void read_at(const Descriptor& file, int64_t offset, std::span<std::byte> out);
/// Whether this errno says that nothing has the name, which may be too long for anything to have it.
bool is_absent(int code);
/// lstat(): false where nothing has that name; Fault::file where the call fails otherwise.
bool find_status(const Path& path, struct stat& found);

/// Opens a regular file without following a link. Links, and pipes without waiting for their other end, are
/// refused with the errors of io::check_regular.
Descriptor open_regular(const Path& path, int flags, std::string_view what);

/// Fault::file unless `found`, the status of `path`, is that of a regular file.
void check_readable(const Path& path, const struct stat& found);
/// Opens a regular file, or the one that a link leads to, for reading. Refuses anything else at once: a pipe
/// is not waited for.
Descriptor open_to_read(const Path& path);

}  // namespace heed::io
