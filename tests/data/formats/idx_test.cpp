// The idx reader with valid and damaged files.
#include "heed/data/formats/idx.h"

#include <numeric>

#include "heed/tests/data/scratch.h"
#include "heed/tests/deflate.h"

using namespace heed;

namespace {

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((value >> shift) & 0xFF);
  return out;
}

std::string images(uint32_t count, uint32_t rows, uint32_t columns, size_t bytes) {
  std::string out = big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns);
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

std::string labels(const std::string& values) {
  return big_endian(0x801) + big_endian(static_cast<uint32_t>(values.size())) + values;
}

}  // namespace

TEST_CASE("idx: images and labels, plain and gzip") {
  const Scratch scratch;
  const std::string pictures = images(2, 3, 4, 24);
  for (const std::string& bytes : {pictures, deflate(pictures)}) {
    const ImageFile file = read_idx_images(scratch.file("i", bytes));
    CHECK(file.count == 2);
    CHECK(file.rows == 3);
    CHECK(file.columns == 4);
    REQUIRE(file.pixels.size() == 24);
    CHECK(file.pixels[23] == 23);
  }
  CHECK(read_idx_labels(scratch.file("l", labels("\x03\x09"))) == std::vector<uint8_t>{3, 9});
  const LabelledImages both = read_labelled_images(scratch.path() / "i", scratch.path() / "l");
  CHECK(both.labels.size() == 2);
}

TEST_CASE("idx: a head that does not fit its file is refused before anything is allocated") {
  const Scratch scratch;
  const auto refused = [&](const std::string& bytes) {
    return refusal(Fault::data, [&] { read_idx_images(scratch.file("i", bytes)); });
  };
  CHECK_THAT(refused(images(2, 3, 4, 23)), containing("2 x 3 x 4"));
  CHECK_THAT(refused(images(2, 3, 4, 25)), containing("25 follow"));
  CHECK_THAT(refused(images(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 24)), containing("4294967295"));
  CHECK_THAT(refused(images(0xFFFFFFFF, 0xFFFFFFFF, 0, 24)), containing("24 follow"));
  CHECK_THAT(refused(images(2, 0, 4, 0)), containing("0 x 4 pixels"));
  CHECK_THAT(refused(labels("\x01")), containing("idx file"));
  CHECK_THAT(refused(labels(std::string(40, 'x'))), containing("interchanged"));
  CHECK_THAT(refused("abc"), containing("3 bytes"));
  refused("");
  refused(deflate(images(2, 3, 4, 24)).substr(0, 25));
  refusal(Fault::file, [&] { read_idx_images(scratch.path()); });
  refusal(Fault::file, [&] { read_idx_images(scratch.path() / "none"); });
}

TEST_CASE("idx: images and labels must belong together") {
  const Scratch scratch;
  const Path i = scratch.file("i", images(2, 1, 1, 2));
  CHECK_THAT(refusal(Fault::data, [&] { read_labelled_images(i, scratch.file("l", labels("\x01"))); }),
             containing("1 labels"));
  CHECK_THAT(refusal(Fault::data, [&] { read_labelled_images(i, scratch.file("l", labels("\x01\x0A"))); }),
             containing("label 1 is 10"));
}

TEST_CASE("idx: mutated files are read or refused, never crash") {
  const Scratch scratch;
  for (const std::string& seed : {images(2, 3, 4, 24), deflate(images(2, 3, 4, 24))}) {
    for (uint64_t i = 0; i < 300; ++i) {
      const Path path = scratch.file("m", damaged(seed, i));
      accepted([&] { read_idx_images(path); });
      accepted([&] { read_idx_labels(path); });
    }
  }
}

TEST_CASE("idx: the real MNIST") {
  const Path folder = real_data("mnist");
  if (folder.empty()) return;
  const LabelledImages train = read_mnist(folder, false);
  const LabelledImages test = read_mnist(folder, true);
  CHECK(train.images.count == 60000);
  CHECK(test.images.count == 10000);
  CHECK(train.images.rows == 28);
  CHECK(train.images.columns == 28);
  CHECK(std::vector<uint8_t>(train.labels.begin(), train.labels.begin() + 5) ==
        std::vector<uint8_t>{5, 0, 4, 1, 9});
  const auto sum = std::accumulate(train.images.pixels.begin(), train.images.pixels.end(), int64_t{0});
  const double mean = static_cast<double>(sum) / static_cast<double>(train.images.pixels.size()) / 255.0;
  CHECK(mean == Approx(0.1307).margin(0.0001));
}
