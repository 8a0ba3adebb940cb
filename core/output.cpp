// Standard output: what cannot be written is said, not lost.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/io.h"

namespace heed::io {
namespace {

[[noreturn]] void refuse(int code) {
  fail(Fault::file, "cannot write standard output: ", std::strerror(code != 0 ? code : EIO), ".",
       code == ENOSPC ? " Free some space there, or write elsewhere." : "");
}

}  // namespace

void print(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse(errno);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse(errno);
}

}  // namespace heed::io
