// Inflates gzip files with zlib.
#include "heed/core/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "heed/core/error.h"
#include "heed/core/scope.h"

namespace heed {
namespace {

constexpr int gzip_window = 15 + 16;  // the largest window, and a gzip header rather than zlib's
constexpr size_t buffer_bytes = size_t{1} << 18;

/// Gives zlib the next part of the input, since it counts in 32 bits.
void feed(z_stream& stream, std::string_view& rest) {
  const size_t count = std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max() / 2);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
  stream.avail_in = static_cast<uInt>(count);
  rest.remove_prefix(count);
}

/// Bounds of the inflated bytes.
struct Bounds {
  int64_t cap = 0;    ///< more is an Error
  int64_t ratio = 0;  ///< more than this many times the packed bytes read so far is an Error; 0: unbounded
  size_t start =
      std::numeric_limits<size_t>::max();  ///< only so many bytes are inflated; to stop there is no Error
};

constexpr int64_t min_checked_bytes = 1 << 20;  // `ratio` does not bound less

std::string inflate_within(std::string_view bytes, const Bounds& bounds, std::string_view name) {
  if (!is_gzip(bytes))
    fail(Fault::data, name, " is not a gzip file: it does not begin with 1f 8b 08 (at byte 0).");
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) fail(Fault::memory, "gzip: no memory for the decoder");
  const AtScopeEnd end([&stream] { inflateEnd(&stream); });
  std::string_view rest = bytes;
  std::string out;
  std::string buffer(buffer_bytes, '\0');
  for (;;) {
    if (stream.avail_in == 0 && !rest.empty()) feed(stream, rest);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    const size_t inflated = buffer.size() - stream.avail_out;
    const size_t position = bytes.size() - rest.size() - stream.avail_in;
    const auto size = static_cast<int64_t>(out.size() + inflated);
    if (bounds.ratio > 0 &&
        size > std::max(min_checked_bytes, bounds.ratio * static_cast<int64_t>(position))) {
      fail(Fault::data, name, " inflates to more than ", bounds.ratio, " times its size (at byte ", position,
           " of ", bytes.size(),
           "), which is beyond the cap for text. Is it the right file? Unpack it first, if it is.");
    }
    if (size > bounds.cap) {
      fail(Fault::data, name, " inflates to more than the ", bounds.cap,
           " bytes that are accepted here (at byte ", position, " of ", bytes.size(),
           "). Is it the right file?");
    }
    out.append(buffer, 0, inflated);
    if (out.size() >= bounds.start) return out.substr(0, bounds.start);
    if (state == Z_STREAM_END) {
      const std::string_view next = bytes.substr(position);
      // Zeros may pad a file, as on tapes; anything else after a member must be another member.
      if (next.find_first_not_of('\0') == std::string_view::npos) return out;
      if (!is_gzip(next)) {
        fail(Fault::data, name, " has bytes after its end, from byte ", position,
             " on. Fetch or pack it again.");
      }
      if (inflateReset(&stream) != Z_OK) fail(Fault::internal, "gzip: cannot reset the decoder");
      continue;
    }
    if (state == Z_MEM_ERROR) fail(Fault::memory, "gzip: no memory to inflate ", name);
    if (state != Z_OK && state != Z_BUF_ERROR) {
      fail(Fault::data, name, " is damaged near byte ", position, " (",
           stream.msg != nullptr ? stream.msg : "bad data", "). Fetch or pack it again.");
    }
    if (stream.avail_in == 0 && rest.empty() && stream.avail_out != 0) {
      fail(Fault::data, name, " is cut short: it ends at byte ", bytes.size(), ". Fetch it again.");
    }
  }
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b\x08"); }

std::string inflate(std::string_view bytes, int64_t cap, std::string_view name) {
  return inflate_within(bytes, {.cap = cap}, name);
}

std::string inflate_text(std::string_view bytes, int64_t cap, std::string_view name) {
  return inflate_within(bytes, {.cap = cap, .ratio = 100}, name);
}

std::string inflate_start(std::string_view bytes, size_t count, std::string_view name) {
  return inflate_within(bytes, {.cap = std::numeric_limits<int64_t>::max(), .start = count}, name);
}

}  // namespace heed
