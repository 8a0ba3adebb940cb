// The only place that touches files: whole reads, atomic writes, appended lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

/// Every failure is an Error with Fault::file that names the path and the reason. Interrupted calls and short
/// writes are continued; what is written atomically is either there as a whole or not at all.
namespace heed::io {

/// Largest text that `read_text` inflates out of a gzip file unless told otherwise, in bytes.
inline constexpr int64_t text_cap = int64_t{4} << 30;

/// Most that is read of what is no regular file, such as a pipe or a device, in bytes.
inline constexpr int64_t stream_cap = int64_t{256} << 20;

/// The whole file, or the one that a link leads to. A folder, pipe, socket or device is refused at once (for
/// those: core/io/input_file.h); `cap` bounds the size in bytes (Fault::data beyond it), 0 for no bound.
std::string read(const Path& path, int64_t cap = 0);

/// All of a file, pipe or device, inflated where its first bytes are those of gzip. Fault::data when it is
/// damaged or larger than `cap` bytes.
std::string read_text(const Path& path, int64_t cap = text_cap);

/// All of a regular file that is found in a folder, inflated where its first bytes are those of gzip. Refuses
/// what read() refuses, so that a pipe in its place holds nobody up; Fault::data when it is damaged or larger
/// than `cap` bytes.
std::string read_regular_text(const Path& path, int64_t cap = text_cap);

/// At most `count` bytes from the byte `offset` on; fewer only at the end of the file.
std::string read_range(const Path& path, int64_t offset, int64_t count);

/// Replaces the file as a whole: a temporary file beside it, fsync, rename, fsync of the folder. It keeps the
/// mode of the old one, and a link leads to the file it names. On failure the old file is untouched.
void write(const Path& path, std::string_view bytes);

/// Creates or overwrites the file in place and syncs it, unless `sync_all` is to follow. For folders that are
/// renamed as a whole afterwards.
void write_plain(const Path& path, std::span<const std::string_view> parts, bool synced = true);

/// Appends lines to a file; each call is one write, so lines of several processes do not mix.
class Appender {
 public:
  Appender() = default;
  /// Opens or creates the file; what is in it stays. Refuses what is no regular file
  /// (core/io/no_follow_files.h).
  explicit Appender(const Path& path);
  Appender(Appender&& other) noexcept;             ///< `other` writes no more
  Appender& operator=(Appender&& other) noexcept;  ///< closes its own file first
  ~Appender();

  /// Appends the text and a newline.
  void line(std::string_view text);
  /// Appends bytes as they are, for binary records.
  void raw(std::string_view bytes);
  /// Forces what was appended to the disk.
  void sync();
  const Path& path() const { return path_; }  ///< as it was opened; empty after the default constructor

 private:
  Path path_;
  int file_ = -1;
};

/// The lines of standard input.
class InputLines {
 public:
  /// The next line without its end, `\n` or `\r\n`; none when there is no more. Fault::data naming the line
  /// when it has more than 1 MiB.
  std::optional<std::string> next();

 private:
  std::string have_;
  int64_t line_ = 0;
  bool ended_ = false;
};

/// Thrown where nobody reads standard output any more, as behind `| head`: nothing is wrong, but there is
/// nobody to work for. No Error, since it is not to be told.
struct OutputClosed {};

/// Standard output and standard error are written here and nowhere else. Text for people is what
/// terminal_text() (core/io/terminal.h) makes of it, wherever it goes, since names and values in it may come
/// from files of others: logs are read on terminals too. What writes to standard output throws Fault::file
/// when it cannot be written, OutputClosed when nobody reads it.

/// Writes text for people to standard output: whole lines, folded to its columns by folded_lines()
/// (core/io/table_text.h).
void print(std::string_view text);

/// Writes what a format of C gives, as print() does.
[[gnu::format(printf, 1, 2)]] void printf(const char* format, ...);

/// Writes what other programs read or what people keep (translations, settings, JSON, paths): byte by byte as
/// it is, but on a terminal as terminal_text() makes it.
void print_data(std::string_view text);

/// Writes text with escape sequences of our own, such as colours; what comes from elsewhere must have been
/// made harmless in it.
void print_styled(std::string_view text);

/// Pushes out what waits for standard output.
void flush_output();

/// Writes text for people to standard error, at once; false when it cannot be written. Lines are folded as
/// print() does where standard error is a terminal or COLUMNS is set: in a log a message stays one line.
bool print_error(std::string_view text);

/// Writes over the last line of the terminal that standard error is, without ending the line; false when it
/// cannot be written.
bool rewrite_error_line(std::string_view line);

/// Drops the first line for which `past` holds and everything after it, and a torn last line; the file is
/// replaced atomically. A file that does not exist is left so. Returns the number of lines that stay.
int64_t truncate_after(const Path& path, const std::function<bool(std::string_view line)>& past);

/// Shortens the file to `size` bytes and syncs it.
void truncate(const Path& path, int64_t size);

/// The folder and those above it; none of them must be there already.
void make_directories(const Path& path);

/// Puts a whole folder in place and syncs the parent folder. What has the name `to` already is not
/// overwritten: an Error, unless it is an empty folder.
void rename_directory(const Path& from, const Path& to);

/// The same, but a folder that has the name `to` already goes away: the two change places in one step where
/// the file system can do that.
void replace_directory(const Path& from, const Path& to);

/// Syncs a folder, so that the names in it survive a power cut.
void sync_directory(const Path& path);

/// Syncs the whole file system that holds a folder: for thousands of small files, of which each would wait
/// for the disk by itself.
void sync_all(const Path& path);

/// Creates one folder and says whether it was new: false when the name is taken. For claiming a name.
bool claim_directory(const Path& path);

/// Holds a folder while it lives, so that processes which would fill it do so one after the other. It ends
/// with the process and leaves no file; where the file system knows no locks it holds nobody up.
class DirectoryLock {
 public:
  /// Waits for whoever holds it; calls `waiting` once before that.
  explicit DirectoryLock(const Path& folder, const std::function<void()>& waiting = {});
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  int folder_ = -1;
};

/// The names in a folder, sorted; empty when it does not exist.
std::vector<Path> list(const Path& path);

bool exists(const Path& path);        ///< whether something has this name; a link counts as what it leads to
bool is_directory(const Path& path);  ///< whether a folder has this name; a link counts as what it leads to
/// Size of a regular file in bytes, or of the one that a link leads to; anything else is refused.
int64_t size(const Path& path);
/// A file or a whole folder goes away; nothing happens when it is not there.
void remove_all(const Path& path);
/// Removes a folder if there is nothing in it; does nothing else.
void remove_empty(const Path& folder);

/// To be called first of all: where standard input, output or error is closed, the next file that is opened
/// would take its number, and what is printed would be written into it. Puts something in their place that
/// can be neither read nor written, so that using them still is the error it was. Fault::file where that
/// cannot be had.
void hold_standard_streams();

}  // namespace heed::io
