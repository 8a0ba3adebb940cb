// Grey PNG through zlib.
#include "data/png.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace heed {
namespace {

constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
constexpr int64_t ratio = 1100;  // deflate makes nothing smaller than 1/1032
constexpr int64_t largest = int64_t{1} << 28;

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

uint32_t check_sum(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// What the nearest of left, above and above left is to left + above - above left.
int paeth(int left, int above, int corner) {
  const int guess = left + above - corner;
  const int a = std::abs(guess - left), b = std::abs(guess - above), c = std::abs(guess - corner);
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

}  // namespace

GreyImage read_png(std::string_view bytes, std::string_view name) {
  const auto wrong = [&](size_t at, const auto&... words) {
    fail(Fault::data, name, ": at byte ", at, words...);
  };
  const auto damaged = [&](size_t at, const auto&... words) {
    wrong(at, words..., ". The file is damaged or cut short: fetch or generate it again.");
  };
  if (!bytes.starts_with(signature)) wrong(0, " there is no PNG signature. Is it a PNG image?");
  GreyImage image;
  std::string packed;
  size_t at = signature.size();
  bool head = false, end = false;
  while (!end) {
    if (bytes.size() - at < 12) damaged(at, " the file ends inside a chunk");
    const auto length = static_cast<size_t>(big_endian(bytes, at));
    if (length > bytes.size() - at - 12)
      damaged(at, " a chunk says that it has ", length, " bytes, and ", bytes.size() - at - 12, " are left");
    const std::string_view type = bytes.substr(at + 4, 4), body = bytes.substr(at + 8, length);
    if (check_sum(bytes.substr(at + 4, length + 4)) != big_endian(bytes, at + 8 + length))
      damaged(at, " a chunk differs from its check sum");
    if (!head && (type != "IHDR" || length != 13)) damaged(at, " the head (IHDR, 13 bytes) is missing");
    if (type == "IHDR") {
      if (head) damaged(at, " there is a second head");
      head = true;
      image.columns = big_endian(body, 0);
      image.rows = big_endian(body, 4);
      if (image.rows < 1 || image.columns < 1) damaged(at + 8, " the image has no pixels");
      if (body[8] != 8 || body[9] != 0 || body[10] != 0 || body[11] != 0 || body[12] != 0) {
        wrong(at + 16, " it has ", static_cast<int>(body[8]), " bits, colour type ",
              static_cast<int>(body[9]), ", interlacing ", static_cast<int>(body[12]),
              ". 8-bit grey without interlacing is needed: convert it.");
      }
    } else if (type == "IDAT") {
      packed += body;
    } else if (type == "IEND") {
      end = true;
    }
    at += 12 + length;
  }
  // Each extent is below 2^32, so the product of both does not overflow 64 bits once one is below 2^28.
  const auto held = static_cast<int64_t>(packed.size()) * ratio;
  if (image.columns > largest || image.rows > largest ||
      image.rows * (image.columns + 1) > std::min(held, largest)) {
    damaged(16, " the head says ", image.rows, " x ", image.columns, " pixels, more than ", packed.size(),
            " packed bytes can hold");
  }
  const int64_t stride = image.columns + 1;
  std::string lines(static_cast<size_t>(image.rows * stride), '\0');
  auto filled = static_cast<uLongf>(lines.size());
  const int code =
      ::uncompress(reinterpret_cast<Bytef*>(lines.data()), &filled,
                   reinterpret_cast<const Bytef*>(packed.data()), static_cast<uLong>(packed.size()));
  if (code != Z_OK || filled != lines.size())
    damaged(signature.size(), " the packed pixels are broken or not as many as the head says");
  image.pixels.resize(static_cast<size_t>(image.rows * image.columns));
  for (int64_t row = 0; row < image.rows; ++row) {
    const std::string_view line =
        std::string_view(lines).substr(static_cast<size_t>(row * stride), static_cast<size_t>(stride));
    char* out = image.pixels.data() + row * image.columns;
    const char* before = row > 0 ? out - image.columns : nullptr;
    const int filter = line[0];
    if (filter < 0 || filter > 4)
      damaged(signature.size(), " row ", row, " has the filter ", filter, "; 0 to 4 exist");
    for (int64_t x = 0; x < image.columns; ++x) {
      const int left = x > 0 ? static_cast<uint8_t>(out[x - 1]) : 0;
      const int above = before != nullptr ? static_cast<uint8_t>(before[x]) : 0;
      const int corner = before != nullptr && x > 0 ? static_cast<uint8_t>(before[x - 1]) : 0;
      const int guess = filter == 1   ? left
                        : filter == 2 ? above
                        : filter == 3 ? (left + above) / 2
                        : filter == 4 ? paeth(left, above, corner)
                                      : 0;
      out[x] = static_cast<char>(static_cast<uint8_t>(line[static_cast<size_t>(x + 1)]) + guess);
    }
  }
  return image;
}

std::string write_png(const GreyImage& image) {
  if (image.rows < 1 || image.columns < 1 ||
      static_cast<int64_t>(image.pixels.size()) != image.rows * image.columns)
    fail("png: ", image.pixels.size(), " pixels are not ", image.rows, " x ", image.columns, ".");
  std::string lines;
  for (int64_t row = 0; row < image.rows; ++row) {
    lines += '\0';
    lines.append(image.pixels, static_cast<size_t>(row * image.columns), static_cast<size_t>(image.columns));
  }
  uLongf size = ::compressBound(static_cast<uLong>(lines.size()));
  std::string packed(size, '\0');
  if (::compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                  reinterpret_cast<const Bytef*>(lines.data()), static_cast<uLong>(lines.size()), 6) != Z_OK)
    fail(Fault::memory, "png: no memory for the encoder");
  packed.resize(size);
  std::string out(signature);
  const auto chunk = [&](std::string_view type, std::string_view body) {
    out += big_endian(static_cast<uint32_t>(body.size()));
    const std::string whole = std::string(type) + std::string(body);
    out += whole + big_endian(check_sum(whole));
  };
  std::string head =
      big_endian(static_cast<uint32_t>(image.columns)) + big_endian(static_cast<uint32_t>(image.rows));
  head += std::string("\x08\0\0\0\0", 5);
  chunk("IHDR", head);
  chunk("IDAT", packed);
  chunk("IEND", "");
  return out;
}

}  // namespace heed
