// Open files by their number, each call checked.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "heed/core/error.h"

namespace heed::io {

/// Throws with the reason of `errno` in words, and what to do where that is known.
[[noreturn]] void refuse(std::string_view what, const Path& path, int code);

/// Repeats a call that a signal interrupted.
template <class Call>
auto again(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// An open file that closes itself.
class Descriptor {
 public:
  /// As open() does with these flags.
  Descriptor(const Path& path, int flags, std::string_view what);
  /// Takes a file that is open already; `path` is for errors.
  Descriptor(int number, const Path& path) : path_(path), number_(number) {}
  Descriptor(Descriptor&& other) noexcept;  ///< `other` is closed no more
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int number() const { return number_; }  ///< for system calls; -1 after release()
  /// Gives the number away: whoever takes it closes it.
  int release();
  /// Closes with a check: some file systems report a full disk only here.
  void close();

 private:
  Path path_;
  int number_ = -1;
};

/// What the system knows of an open file, and of a path of which a link at its end is not followed; false
/// where there is nothing.
struct stat look(int file, const Path& path);
/// Whether this errno says that nothing has the name, which may be too long for anything to have it.
bool is_absent(int code);
/// False where nothing has that name; Fault::file where the system refuses.
bool look_at(const Path& path, struct stat& found);

/// Opens what must be a regular file at that path itself. A link is not followed, and a pipe that nobody
/// reads holds nobody up: both are refused with the words of io::check_regular.
Descriptor open_regular(const Path& path, int flags, std::string_view what);

/// Fault::file where what was found there is no regular file.
void check_readable(const Path& path, const struct stat& found);
/// Opens a regular file, or the one that a link leads to, for reading. Whatever else has the name is refused
/// at once: a pipe is not waited for.
Descriptor open_to_read(const Path& path);

}  // namespace heed::io
