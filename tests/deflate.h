// Packs bytes as gzip files for tests of their readers.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

#include "heed/core/error.h"

namespace heed {

/// Packs the bytes into one gzip member; equal input gives equal output.
inline std::string deflate(std::string_view bytes) {
  constexpr int gzip_window = 15 + 16;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail(Fault::memory, "gzip: no memory for the encoder");
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = ::deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) fail(Fault::internal, "gzip: the encoder failed with ", state);
  return out;
}

}  // namespace heed
