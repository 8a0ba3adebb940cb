// Fuzz target: grey PNG images.
#include "heed/data/formats/png.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  GreyImage image;
  // Packed pixels are held twice when they are there: once in lines, once without the filters.
  if (law::obeys("image.png", input, [&] { image = read_png(input, "image.png"); }, {.per_byte = 2 * 1100})) {
    law::demand(image.rows > 0 && image.columns > 0, "an image has pixels");
    law::demand(static_cast<int64_t>(image.pixels.size()) == image.rows * image.columns,
                "every pixel is there");
    const GreyImage again = read_png(write_png(image), "again.png");
    law::demand(again.pixels == image.pixels && again.rows == image.rows, "what is written is read");
  }
  return 0;
}
