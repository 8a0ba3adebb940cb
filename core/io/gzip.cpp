// Gzip through zlib.
#include "heed/core/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "heed/core/error.h"

namespace heed {
namespace {

constexpr int gzip_window = 15 + 16;  // the largest window, and a gzip header rather than zlib's
constexpr size_t piece = size_t{1} << 18;

/// zlib counts in 32 bits: hands it the next part of the input.
void feed(z_stream& stream, std::string_view& rest) {
  const size_t count = std::min<size_t>(rest.size(), std::numeric_limits<uInt>::max() / 2);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
  stream.avail_in = static_cast<uInt>(count);
  rest.remove_prefix(count);
}

struct Inflater {
  z_stream stream{};
  Inflater() {
    if (inflateInit2(&stream, gzip_window) != Z_OK) fail(Fault::memory, "gzip: no memory for the decoder");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream{};
  Deflater() {
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      fail(Fault::memory, "gzip: no memory for the encoder");
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 3 && bytes[0] == '\x1f' && bytes[1] == '\x8b' && bytes[2] == '\x08';
}

namespace {

/// Where inflating ends: with an Error beyond `cap` or `ratio` times the packed bytes read so far (0: any),
/// or in peace at `start` bytes.
struct Bounds {
  int64_t cap = 0, ratio = 0;
  size_t start = std::numeric_limits<size_t>::max();
};

constexpr int64_t never_a_bomb = 1 << 20;  // bytes

std::string inflate_within(std::string_view bytes, const Bounds& bounds, std::string_view name) {
  if (!is_gzip(bytes))
    fail(Fault::data, name, " is not a gzip file: it does not begin with 1f 8b 08 (at byte 0).");
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string_view rest = bytes;
  std::string out;
  std::string buffer(piece, '\0');
  for (;;) {
    if (stream.avail_in == 0 && !rest.empty()) feed(stream, rest);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    const size_t made = buffer.size() - stream.avail_out;
    const size_t at = bytes.size() - rest.size() - stream.avail_in;
    const auto size = static_cast<int64_t>(out.size() + made);
    if (bounds.ratio > 0 && size > std::max(never_a_bomb, bounds.ratio * static_cast<int64_t>(at))) {
      fail(Fault::data, name, " inflates to more than ", bounds.ratio, " times its size (at byte ", at,
           " of ", bytes.size(),
           "), which is beyond the cap for text. Is it the right file? Unpack it first, if it is.");
    }
    if (size > bounds.cap) {
      fail(Fault::data, name, " inflates to more than the ", bounds.cap,
           " bytes that are accepted here (at byte ", at, " of ", bytes.size(), "). Is it the right file?");
    }
    out.append(buffer, 0, made);
    if (out.size() >= bounds.start) return out.substr(0, bounds.start);
    if (state == Z_STREAM_END) {
      const std::string_view next = bytes.substr(at);
      // Zeros pad files on tapes; anything else after a member must be another member.
      if (next.find_first_not_of('\0') == std::string_view::npos) return out;
      if (!is_gzip(next)) {
        fail(Fault::data, name, " has bytes after its end, from byte ", at, " on. Fetch or pack it again.");
      }
      if (inflateReset(&stream) != Z_OK) fail(Fault::internal, "gzip: cannot reset the decoder");
      continue;
    }
    if (state == Z_MEM_ERROR) fail(Fault::memory, "gzip: no memory to inflate ", name);
    if (state != Z_OK && state != Z_BUF_ERROR) {
      fail(Fault::data, name, " is damaged near byte ", at, " (",
           stream.msg != nullptr ? stream.msg : "bad data", "). Fetch or pack it again.");
    }
    if (stream.avail_in == 0 && rest.empty() && stream.avail_out != 0) {
      fail(Fault::data, name, " is cut short: it ends at byte ", bytes.size(), ". Fetch it again.");
    }
  }
}

}  // namespace

std::string inflate(std::string_view bytes, int64_t cap, std::string_view name) {
  return inflate_within(bytes, {.cap = cap}, name);
}

std::string inflate_text(std::string_view bytes, int64_t cap, std::string_view name) {
  return inflate_within(bytes, {.cap = cap, .ratio = 100}, name);
}

std::string inflate_start(std::string_view bytes, size_t count, std::string_view name) {
  return inflate_within(bytes, {.cap = std::numeric_limits<int64_t>::max(), .start = count}, name);
}

std::string deflate(std::string_view bytes) {
  Deflater deflater;
  z_stream& stream = deflater.stream;
  std::string_view rest = bytes;
  std::string out;
  std::string buffer(piece, '\0');
  for (;;) {
    if (stream.avail_in == 0 && !rest.empty()) feed(stream, rest);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int state = ::deflate(&stream, rest.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, 0, buffer.size() - stream.avail_out);
    if (state == Z_STREAM_END) return out;
    if (state != Z_OK && state != Z_BUF_ERROR) fail(Fault::internal, "gzip: the encoder failed with ", state);
  }
}

}  // namespace heed
