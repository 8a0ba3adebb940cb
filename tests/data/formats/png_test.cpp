// Grey PNG: what is written is read, every filter, and damage.
#include "heed/data/formats/png.h"

#include <zlib.h>

#include "heed/tests/data/scratch.h"

using namespace heed;

namespace {

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

std::string chunk(const std::string& type, const std::string& body) {
  const std::string whole = type + body;
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(whole.data()), static_cast<uInt>(whole.size()));
  return big_endian(static_cast<uint32_t>(body.size())) + whole + big_endian(static_cast<uint32_t>(sum));
}

/// A PNG whose lines (each a filter and its bytes) and head are as given.
std::string png(uint32_t columns, uint32_t rows, const std::string& lines,
                const std::string& kind = std::string("\x08\0\0\0\0", 5)) {
  uLongf size = ::compressBound(static_cast<uLong>(lines.size()));
  std::string packed(size, '\0');
  REQUIRE(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                     reinterpret_cast<const Bytef*>(lines.data()), static_cast<uLong>(lines.size())) == Z_OK);
  packed.resize(size);
  const size_t half = packed.size() / 2;  // pixels may come in several chunks, among others
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", big_endian(columns) + big_endian(rows) + kind) +
         chunk("tEXt", "note") + chunk("IDAT", packed.substr(0, half)) + chunk("IDAT", packed.substr(half)) +
         chunk("IEND", "");
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

}  // namespace

TEST_CASE("png: what is written is read") {
  GreyImage image{.rows = 3, .columns = 5, .pixels = {}};
  for (int i = 0; i < 15; ++i) image.pixels += static_cast<char>(i * 17);
  const GreyImage again = read_png(write_png(image), "x.png");
  CHECK(again.rows == 3);
  CHECK(again.columns == 5);
  CHECK(again.pixels == image.pixels);
  CHECK(write_png(image) == write_png(again));
}

TEST_CASE("png: each filter adds its guess") {
  // Pixels 10 20 30 / 40 60 90 whatever the filter of the second line.
  const std::string first = bytes({0, 10, 20, 30}), wanted = bytes({10, 20, 30, 40, 60, 90});
  const auto read = [&](std::initializer_list<int> second) {
    return read_png(png(3, 2, first + bytes(second)), "x.png").pixels;
  };
  CHECK(read({0, 40, 60, 90}) == wanted);
  CHECK(read({1, 40, 20, 30}) == wanted);
  CHECK(read({2, 30, 40, 60}) == wanted);
  CHECK(read({3, 35, 30, 45}) == wanted);  // (0 + 10) / 2, (40 + 20) / 2, (60 + 30) / 2
  CHECK(read({4, 30, 20, 30}) == wanted);  // nearest to 10, 50, 70: 10, 40, 60
  CHECK(read_png(png(2, 1, bytes({1, 200, 100})), "x.png").pixels == bytes({200, 44}));  // 300 - 256
}

TEST_CASE("png: what is no grey image is refused with the byte") {
  const auto refused = [](const std::string& file) {
    return refusal(Fault::data, [&] { read_png(file, "x.png"); });
  };
  const std::string good = png(2, 1, bytes({0, 1, 2}));
  CHECK_THAT(refused(""), containing("x.png: at byte 0"));
  CHECK_THAT(refused(good.substr(0, good.size() - 3)), containing("ends inside a chunk"));
  std::string line(61, '\0');
  for (size_t i = 1; i < line.size(); ++i) line[i] = static_cast<char>(i * i);
  const std::string longer = png(60, 1, line);
  CHECK_THAT(
      refused(longer.substr(0, longer.size() - 22)),
      containing(
          "the file ends inside a chunk. The file is damaged or cut short: fetch or generate it again."));
  CHECK_THAT(refused(png(2, 1, bytes({0, 1, 2}), std::string("\x10\0\0\0\0", 5))), containing("16 bits"));
  CHECK_THAT(refused(png(2, 1, bytes({0, 1, 2}), std::string("\x08\2\0\0\0", 5))),
             containing("colour type 2"));
  CHECK_THAT(refused(png(2, 1, bytes({5, 1, 2}))), containing("bad adaptive filter value"));
  CHECK_THAT(refused(png(2, 2, bytes({0, 1, 2}))), containing("Not enough image data"));
  CHECK_THAT(refused(png(0xFFFFFFFF, 0xFFFFFFFF, bytes({0, 1, 2}))),
             containing("at byte 33: PNG unsigned integer"));
  CHECK_THAT(refused(png(1 << 20, 1 << 20, bytes({0, 1, 2}))), containing("1048576 x 1048576"));
  CHECK_THAT(refused(png(1 << 13, 1 << 13, bytes({0, 1, 2}))), containing("8192 x 8192"));
  CHECK_THAT(refused(png(0, 1, "")), containing("Invalid IHDR"));
  CHECK_THAT(refused(png(2, 1, bytes({0, 1, 2, 3}))), containing("Too much image data"));
  std::string flipped = good;
  flipped[20] = static_cast<char>(flipped[20] ^ 1);
  CHECK_THAT(refused(flipped), containing("IHDR: CRC error"));
  for (uint64_t i = 0; i < 500; ++i) accepted([&] { read_png(damaged(good, i), "x.png"); });
}
