// Fuzz target: idx images and labels, plain and gzip.
#include "heed/data/formats/idx.h"

#include "heed/core/io/gzip.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, "-ubyte");
  // What a gzip file holds is the input as far as memory goes: no more than 1032 times its size.
  const law::Bounds bounds{.per_byte = is_gzip(input) ? 2 * 1032 : 0};
  ImageFile images;
  if (law::obeys(
          path.string(), input, [&] { images = read_idx_images(path); }, bounds)) {
    law::demand(images.rows > 0 && images.columns > 0, "an image has pixels");
    law::demand(static_cast<int64_t>(images.pixels.size()) == images.count * images.rows * images.columns,
                "every pixel is there");
    law::demand(is_gzip(input) || images.pixels.size() + 16 == size, "no byte is left over");
  }
  std::vector<uint8_t> labels;
  if (law::obeys(
          path.string(), input, [&] { labels = read_idx_labels(path); }, bounds)) {
    law::demand(is_gzip(input) || labels.size() + 8 == size, "no byte is left over");
    law::obeys(
        path.string(), input, [&] { read_labelled_images(path, path); }, bounds);
  }
  return 0;
}
