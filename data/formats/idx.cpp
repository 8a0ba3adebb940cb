// Reads idx files.
#include "heed/data/formats/idx.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "heed/core/io/files.h"
#include "heed/core/io/gzip.h"
#include "heed/data/formats/expected_files.h"

namespace heed {
namespace {

constexpr int64_t max_idx_bytes = int64_t{2} << 30;  // bytes of a file, decompressed
constexpr int64_t max_ratio = 1100;                  // deflate compresses by 1032 at most
constexpr uint32_t byte_type = 0x08;

/// A whole idx file: 4 bytes of magic number, 4 bytes per extent, then the elements.
struct IdxFile {
  std::vector<int64_t> extents;
  std::string bytes;
  size_t head = 0;  // bytes before the elements
};

/// The big-endian 32-bit number at an offset.
uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Reads a file with `rank` extents, plain or gzip. The size is checked before it is decompressed.
IdxFile read_idx(const Path& path, size_t rank) {
  IdxFile file;
  std::string stored = io::read(path, max_idx_bytes);
  const bool is_packed = is_gzip(stored);
  file.head = 4 + 4 * rank;
  const std::string head =
      is_packed ? inflate_start(stored, file.head, path.string()) : stored.substr(0, file.head);
  if (head.size() < file.head) {
    fail(Fault::data, path, ": ", head.size(), " bytes; the head of an idx file with ", rank,
         " extents ends at byte ", file.head, ". Fetch it again.");
  }
  const uint32_t magic = big_endian(head, 0);
  if (magic != ((byte_type << 8) | rank)) {
    fail(Fault::data, path, ": the magic number at byte 0 is ", magic, "; ", (byte_type << 8) | rank,
         rank == 3 ? " (images)" : " (labels)", " is needed. Are images and labels interchanged?");
  }
  int64_t volume = 1;
  std::string shape;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = big_endian(head, 4 + 4 * i);
    file.extents.push_back(extent);
    shape += text(i == 0 ? "" : " x ", extent);
    // Each factor is below 2^32, and the product stops growing above 2^31, so it cannot overflow.
    volume = volume > max_idx_bytes ? volume : volume * extent;
  }
  const int64_t max_volume =
      is_packed ? static_cast<int64_t>(stored.size()) * max_ratio : static_cast<int64_t>(stored.size());
  if (volume > std::min(max_volume, max_idx_bytes)) {
    fail(Fault::data, path, ": the head says ", shape, " bytes, but no more than ",
         std::max<int64_t>(0, max_volume - static_cast<int64_t>(file.head)), " follow it from byte ",
         file.head, " on. The file is damaged or cut short; fetch it again.");
  }
  const int64_t cap = static_cast<int64_t>(file.head) + volume;
  file.bytes = is_packed ? inflate(stored, cap, path.string()) : std::move(stored);
  const int64_t num_elements = static_cast<int64_t>(file.bytes.size() - file.head);
  if (volume != num_elements) {
    fail(Fault::data, path, ": the head says ", shape, " bytes, but ", num_elements, " follow it from byte ",
         file.head, " on. The file is damaged or cut short; fetch it again.");
  }
  return file;
}

std::vector<uint8_t> elements_of(const IdxFile& file) {
  return {file.bytes.begin() + static_cast<std::ptrdiff_t>(file.head), file.bytes.end()};
}

}  // namespace

ImageFile read_idx_images(const Path& path) {
  const IdxFile file = read_idx(path, 3);
  if (file.extents[1] == 0 || file.extents[2] == 0) {
    fail(Fault::data, path, ": images of ", file.extents[1], " x ", file.extents[2],
         " pixels (at byte 8). Every image must have some.");
  }
  return {.count = file.extents[0],
          .rows = file.extents[1],
          .columns = file.extents[2],
          .pixels = elements_of(file)};
}

std::vector<uint8_t> read_idx_labels(const Path& path) { return elements_of(read_idx(path, 1)); }

LabelledImages read_labelled_images(const Path& images, const Path& labels, int64_t classes) {
  LabelledImages out{.images = read_idx_images(images), .labels = read_idx_labels(labels)};
  const auto count = static_cast<int64_t>(out.labels.size());
  if (count != out.images.count) {
    fail(Fault::data, images, " has ", out.images.count, " images and ", labels, " has ", count,
         " labels (at byte 4 of each). They do not belong together.");
  }
  for (size_t i = 0; i < out.labels.size(); ++i) {
    if (out.labels[i] < classes) continue;
    fail(Fault::data, labels, ": label ", i, " is ", static_cast<int>(out.labels[i]), " (byte ", i + 8,
         "); labels are 0 .. ", classes - 1, ".");
  }
  return out;
}

LabelledImages read_mnist(const Path& folder, bool test) {
  expect_files(folder, {.what = "MNIST",
                        .names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                  "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
                        .gzip = true,
                        .bring = "Fetch it: heed data get mnist."});
  const std::string part = test ? "t10k" : "train";
  return read_labelled_images(plain_or_gzip(folder / (part + "-images-idx3-ubyte")),
                              plain_or_gzip(folder / (part + "-labels-idx1-ubyte")));
}

}  // namespace heed
