// Files and standard streams: whole reads, atomic writes, appended lines. No other code opens files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/file_descriptor.h"

/// Every failure is an Error with Fault::file that names the path and the reason. Interrupted calls and short
/// writes are continued. After an atomic write the file is complete or unchanged.
namespace heed::io {

/// Default limit of the bytes that read_text() inflates from a gzip file.
inline constexpr int64_t text_cap = int64_t{4} << 30;

/// Limit of the bytes that are read from a pipe or a device.
inline constexpr int64_t stream_cap = int64_t{256} << 20;

/// Reads a whole regular file, following links. Refuses a folder, pipe, socket or device at once;
/// read_input() takes these. `cap` limits the size in bytes (Fault::data beyond it); 0: no limit.
std::string read(const Path& path, int64_t cap = 0);

/// Reads a regular file from its beginning to its end: calls `f` with one piece of at most 1 MiB after the
/// other.
void read_pieces(const Path& path, const std::function<void(std::string_view piece)>& f);

/// Reads a file that a user names, which may be a pipe: --file <(command). A pipe or a device is read to its
/// end, up to io::stream_cap bytes unless `cap` says otherwise. Files found in a folder, such as those of a
/// run, are read by read(), so that a pipe in their place cannot block the program.
std::string read_input(const Path& path, int64_t cap = 0);

/// read_input(), inflated where the first bytes are those of gzip. Fault::data when it is damaged or larger
/// than `cap` bytes.
std::string read_text(const Path& path, int64_t cap = text_cap);

/// read(), inflated where the first bytes are those of gzip. Fault::data when it is damaged or larger than
/// `cap` bytes.
std::string read_regular_text(const Path& path, int64_t cap = text_cap);

/// Replaces the file atomically: writes a temporary file beside it, syncs and renames it, syncs the folder.
/// Keeps the mode of the old file and follows links. On failure the old file is unchanged.
void write(const Path& path, std::string_view bytes);

/// Creates or overwrites the file in place; syncs it unless `synced` is false because sync_all() follows. For
/// folders that are renamed as a whole afterwards.
void write_plain(const Path& path, std::span<const std::string_view> parts, bool synced = true);

/// Appends lines to a file; each call is one write, so lines of several processes do not mix.
class Appender {
 public:
  Appender() = default;
  /// Opens or creates the file and keeps its content. Refuses what is no regular file
  /// (core/io/no_follow_files.h).
  explicit Appender(const Path& path);

  /// Appends the text and a newline.
  void line(std::string_view text);
  /// Appends bytes as they are, for binary records.
  void raw(std::string_view bytes);
  /// Forces what was appended to the disk.
  void sync();
  const Path& path() const { return file_.path(); }  ///< as it was opened; empty without a file

 private:
  Descriptor file_;
};

/// The lines of standard input.
class InputLines {
 public:
  /// Reads the next line without its end, `\n` or `\r\n`; none at the end. Fault::data naming the line when
  /// it has more than 1 MiB.
  std::optional<std::string> next();

 private:
  std::string unread_;       // bytes that were read and not returned
  int64_t line_number_ = 0;  // number of the last line that was returned
  bool is_at_end_ = false;
};

/// Thrown where the reader of standard output has closed it, as `| head` does. It is no Error, since nothing
/// is wrong and nothing is printed.
struct OutputClosed {};

/// Standard output and standard error are written only by the functions below. Text for people passes through
/// terminal_text() (core/io/terminal.h), also where it is no terminal, since names and values in it may come
/// from other people's files and logs are read on terminals. Functions that write to standard output throw
/// Fault::file when it cannot be written, OutputClosed when its reader has closed it.

/// Writes text for people to standard output: whole lines, wrapped to its columns by folded_lines()
/// (core/io/table_text.h).
void print(std::string_view text);

/// Writes text for people to standard output by a format of std::printf.
[[gnu::format(printf, 1, 2)]] void printf(const char* format, ...);

/// Writes data for other programs or files (translations, settings, JSON, paths): unchanged, but on a
/// terminal as print() does.
void print_data(std::string_view text);

/// Writes text with escape sequences of our own, such as colours; foreign parts of it must have passed
/// through terminal_text().
void print_styled(std::string_view text);

/// Flushes standard output.
void flush_output();

/// Writes text for people to standard error, at once; false when it cannot be written. Wraps lines as print()
/// does where standard error is a terminal or COLUMNS is set: in a log a message stays one line.
bool print_error(std::string_view text);

/// Replaces the last line on the terminal of standard error, without ending the line; false when it cannot be
/// written.
bool rewrite_error_line(std::string_view line);

/// Removes the first line for which `is_past` is true and everything behind it, and an incomplete last line,
/// by an atomic write. Returns the number of remaining lines, 0 for a missing file.
int64_t truncate_after(const Path& path, const std::function<bool(std::string_view line)>& is_past);

/// Shortens the file to `size` bytes and syncs it.
void truncate(const Path& path, int64_t size);

/// Creates the folder and its missing parents.
void make_directories(const Path& path);

/// Renames a folder and syncs the parent folder. Fails where `to` exists and is not an empty folder.
void rename_directory(const Path& from, const Path& to);

/// Renames a folder and removes a folder that has the name `to` already: the two are exchanged atomically
/// where the file system can do that.
void replace_directory(const Path& from, const Path& to);

/// Syncs a folder, so that the names in it survive a power cut.
void sync_directory(const Path& path);

/// Syncs the whole file system of a folder: faster than syncing thousands of small files one by one.
void sync_all(const Path& path);

/// Creates one folder; returns false when the name is taken. Claims a name among processes.
bool claim_directory(const Path& path);

/// Locks a folder while it lives, so that processes fill it one after the other. The lock ends with the
/// process and leaves no file. It has no effect where the file system has no locks.
class DirectoryLock {
 public:
  /// Waits until no other process holds the lock; calls `waiting` once before it waits.
  explicit DirectoryLock(const Path& folder, const std::function<void()>& waiting = {});

 private:
  Descriptor folder_;
};

/// The names in a folder, sorted; empty when it does not exist.
std::vector<Path> list(const Path& path);

bool exists(const Path& path);        ///< whether something has this name; a link counts as what it leads to
bool is_directory(const Path& path);  ///< whether a folder has this name; a link counts as what it leads to
/// Size of a regular file in bytes, or of the one that a link leads to; anything else is refused.
int64_t size(const Path& path);
/// Removes a file or a whole folder, if it exists.
void remove_all(const Path& path);
/// Removes a folder if it is empty.
void remove_empty(const Path& folder);

/// Replaces closed standard streams by descriptors that can be neither read nor written. Otherwise the next
/// file that is opened would get the number of standard output, and prints would be written into it. To be
/// called first in main(). Fault::file where that fails.
void hold_standard_streams();

}  // namespace heed::io
