// Standard input by lines, and checked writes to standard output and standard error.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/rewritten_lines.h"
#include "heed/core/io/table_text.h"
#include "heed/core/io/terminal.h"

namespace heed::io {
namespace {

/// Whether standard output is a pipe whose reader has closed it; stdio may have lost the errno of the write.
bool is_reader_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

[[noreturn]] void refuse(int code) {
  if (code == EPIPE || (code == 0 && is_reader_gone())) throw OutputClosed();
  fail(Fault::file, "cannot write standard output: ", std::strerror(code != 0 ? code : EIO), ".",
       code == ENOSPC ? " Free some space there, or write elsewhere." : "");
}

/// Writes to standard output through its buffer.
void put(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse(errno);
}

/// Writes to standard error at once; false where that fails.
bool put_error(std::string_view text) {
  const bool is_complete = std::fwrite(text.data(), 1, text.size(), stderr) == text.size();
  return std::fflush(stderr) == 0 && is_complete;
}

}  // namespace

std::optional<std::string> InputLines::next() {
  static constexpr size_t max_line_bytes = size_t{1} << 20;
  size_t searched = 0;  // bytes of unread_ without a line end
  for (;;) {
    const size_t end = unread_.find('\n', searched);
    if (end != std::string::npos || is_at_end_) {
      if (unread_.empty()) return std::nullopt;
      ++line_number_;
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return line;
    }
    searched = unread_.size();
    if (searched > max_line_bytes) {
      fail(Fault::data, "standard input:", line_number_ + 1, ": the line has more than the ", max_line_bytes,
           " bytes that are accepted. Is this text with one sentence a line?");
    }
    char more[4096];
    const ssize_t count = ::read(STDIN_FILENO, more, sizeof more);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(Fault::file, "cannot read standard input: ", std::strerror(errno), ".");
    is_at_end_ = count == 0;
    unread_.append(more, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
}

void print(std::string_view text) { put(folded_lines(terminal_text(text), output_columns())); }

void printf(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  const std::string text = formatted_list(format, values);
  va_end(values);
  print(text);
}

void print_data(std::string_view text) {
  put(isatty(STDOUT_FILENO) == 1 ? terminal_text(text) : std::string(text));
}

void print_styled(std::string_view text) { put(text); }

bool print_error(std::string_view text) {
  const int64_t columns = terminal_columns(STDERR_FILENO, unlimited_columns);
  return put_error(folded_lines(terminal_text(text), columns));
}

bool rewrite_error_line(std::string_view line) { return put_error("\r" + terminal_word(line) + "\033[K"); }

bool rewrite_error_lines(const std::vector<std::string>& lines, size_t num_before) {
  std::string out = num_before > 1 ? text("\r\033[", num_before - 1, "A\033[J") : "\r\033[J";
  for (size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? "\n" : "") + terminal_word(lines[i]);
  return put_error(out);
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse(errno);
}

}  // namespace heed::io
