// Reads and writes grey PNG by libpng, which reports errors by longjmp: so objects with destructors live
// outside of the functions that call libpng.
#include "heed/data/formats/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <vector>

#include "heed/core/error.h"

namespace heed {
namespace {

constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
constexpr int64_t max_ratio_of_deflate = 1100;  // it is 1032
constexpr int64_t max_image_bytes = int64_t{1} << 28;

/// Bytes that libpng reads or has written, and its error message.
struct Stream {
  std::string_view in;
  size_t at = 0;  // bytes of `in` that were read
  std::string out;
  char why[160] = {};
};

/// Called by libpng for an error: keeps the message and jumps back to setjmp().
[[noreturn]] void stop(png_structp png, png_const_charp why) {
  std::strncpy(static_cast<Stream*>(png_get_error_ptr(png))->why, why, sizeof(Stream::why) - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  Stream& stream = *static_cast<Stream*>(png_get_io_ptr(png));
  if (count > stream.in.size() - stream.at) png_error(png, "the file ends inside a chunk");
  std::memcpy(to, stream.in.data() + stream.at, count);
  stream.at += count;
}

void write_bytes(png_structp png, png_bytep from, size_t count) {
  bool written = false;
  try {
    static_cast<Stream*>(png_get_io_ptr(png))->out.append(reinterpret_cast<const char*>(from), count);
    written = true;
  } catch (const std::bad_alloc&) {  // must not pass through C
  }
  if (!written) png_error(png, "no memory");
}

/// A reader or writer of libpng, and its description of the image.
struct Codec {
  explicit Codec(Stream& stream, bool writes)
      : writer(writes),
        png(writes ? png_create_write_struct(PNG_LIBPNG_VER_STRING, &stream, stop, ignore_warning)
                   : png_create_read_struct(PNG_LIBPNG_VER_STRING, &stream, stop, ignore_warning)),
        info(png == nullptr ? nullptr : png_create_info_struct(png)) {
    if (info == nullptr) fail(Fault::memory, "png: no memory for the codec");
  }
  ~Codec() { writer ? png_destroy_write_struct(&png, &info) : png_destroy_read_struct(&png, &info, nullptr); }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  bool writer;
  png_structp png;
  png_infop info;
};

/// Reads the file up to the pixels; false when libpng refuses it.
bool read_head(png_structp png, png_infop info, Stream& stream) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &stream, read_bytes);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_benign_errors(png, 0);
  png_set_user_limits(png, static_cast<png_uint_32>(max_image_bytes),
                      static_cast<png_uint_32>(max_image_bytes));
  // All ancillary chunks are skipped (-1), so that texts and profiles are not unpacked.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  return true;
}

/// Reads the pixels and the chunks behind them; false when libpng refuses them.
bool read_rows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

/// Writes a whole file; false when libpng fails.
bool write_rows(png_structp png, png_infop info, Stream& stream, png_uint_32 num_columns,
                png_uint_32 num_rows, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, &stream, write_bytes, nullptr);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_compression_level(png, 6);
  png_set_IHDR(png, info, num_columns, num_rows, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  png_write_info(png, info);
  png_write_image(png, rows);
  png_write_end(png, info);
  return true;
}

/// Pointers to the rows of an image, which libpng asks for.
std::vector<png_bytep> rows_of(char* pixels, int64_t rows, int64_t columns) {
  std::vector<png_bytep> out;
  for (int64_t row = 0; row < rows; ++row) out.push_back(reinterpret_cast<png_bytep>(pixels + row * columns));
  return out;
}

}  // namespace

GreyImage read_png(std::string_view bytes, std::string_view name) {
  if (!bytes.starts_with(signature))
    fail(Fault::data, name, ": at byte 0 there is no PNG signature. Is it a PNG image?");
  Stream stream{.in = bytes, .out = {}};
  const Codec codec(stream, false);
  const auto damaged = [&](const auto&... words) {
    fail(Fault::data, name, ": at byte ", stream.at, ": ", words...,
         ". The file is damaged or cut short: fetch or generate it again.");
  };
  if (!read_head(codec.png, codec.info, stream)) damaged(stream.why);
  GreyImage image{.rows = png_get_image_height(codec.png, codec.info),
                  .columns = png_get_image_width(codec.png, codec.info),
                  .pixels = {}};
  const int bits = png_get_bit_depth(codec.png, codec.info),
            colour = png_get_color_type(codec.png, codec.info),
            interlacing = png_get_interlace_type(codec.png, codec.info);
  if (bits != 8 || colour != PNG_COLOR_TYPE_GRAY || interlacing != PNG_INTERLACE_NONE) {
    fail(Fault::data, name, ": at byte 24 it has ", bits, " bits, colour type ", colour, ", interlacing ",
         interlacing, ". 8-bit grey without interlacing is needed: convert it.");
  }
  // Each extent is at most 2^28, so the product does not overflow.
  if (image.rows * (image.columns + 1) >
      std::min(static_cast<int64_t>(bytes.size()) * max_ratio_of_deflate, max_image_bytes)) {
    damaged("the head says ", image.rows, " x ", image.columns, " pixels, more than ", bytes.size(),
            " bytes can hold");
  }
  image.pixels.resize(static_cast<size_t>(image.rows * image.columns));
  if (!read_rows(codec.png, rows_of(image.pixels.data(), image.rows, image.columns).data()))
    damaged(stream.why);
  return image;
}

std::string write_png(const GreyImage& image) {
  if (image.rows < 1 || image.columns < 1 || std::max(image.rows, image.columns) > max_image_bytes ||
      static_cast<int64_t>(image.pixels.size()) != image.rows * image.columns)
    fail("png: ", image.pixels.size(), " pixels are not ", image.rows, " x ", image.columns, ".");
  Stream stream;
  const Codec codec(stream, true);
  std::string pixels = image.pixels;  // libpng does not write there, but takes no const pointer
  if (!write_rows(codec.png, codec.info, stream, static_cast<png_uint_32>(image.columns),
                  static_cast<png_uint_32>(image.rows),
                  rows_of(pixels.data(), image.rows, image.columns).data()))
    fail(Fault::memory, "png: ", stream.why);
  return std::move(stream.out);
}

}  // namespace heed
