// Makes tokens of pictures: averages them down, cuts them into patches, names patches by row and column.
#include "heed/train/tasks/lra/pictures.h"

#include "heed/core/parallel/thread_pool.h"

namespace heed {
namespace {

// The index in a row-by-row image of pixel number `index` in the order of patch_by_patch().
size_t pixel_at(int64_t index, int64_t side, int64_t patch) {
  const int64_t area = patch * patch, patches_per_row = side / patch;
  const int64_t square = index / area, in_square = index % area;
  const int64_t row = square / patches_per_row * patch + in_square / patch,
                column = square % patches_per_row * patch + in_square % patch;
  return static_cast<size_t>(row * side + column);
}

// A usage error where images of `from` pixels a side cannot be averaged down to `side`.
void check_side(int64_t from, int64_t side) {
  if (side < 1 || from % side != 0)
    fail("data.side = ", side, ". It must divide the ", from, " pixels of a side, as ", from / 2, " does.");
}

// Images of `from` pixels a side, averaged down to `side`.
Sequences shrunk(Sequences images, int64_t from, int64_t side) {
  check_side(from, side);
  if (side == from) return images;
  const int64_t block = from / side, count = images.count();
  Sequences out = blank_sequences(images.labels, side * side);
  parallel_rows(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::string_view image = images.at(i);
      for (int64_t cell = 0; cell < side * side; ++cell) {
        int64_t sum = 0;
        for (int64_t y = 0; y < block; ++y) {
          for (int64_t x = 0; x < block; ++x)
            sum += static_cast<uint8_t>(
                image[static_cast<size_t>((cell / side * block + y) * from + cell % side * block + x)]);
        }
        const int64_t area = block * block;
        out.bytes[static_cast<size_t>(i * side * side + cell)] =
            static_cast<char>(static_cast<uint8_t>((sum + area / 2) / area));
      }
    }
  });
  return out;
}

// Reorders the pixels of images from row by row to patch by patch, in which they stand row by row.
Sequences patch_by_patch(Sequences images, int64_t side, int64_t patch) {
  if (patch == 1) return images;
  const int64_t pixels = side * side;
  parallel_rows(images.count(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::string image(images.at(i));
      for (int64_t pixel = 0; pixel < pixels; ++pixel)
        images.bytes[static_cast<size_t>(i * pixels + pixel)] = image[pixel_at(pixel, side, patch)];
    }
  });
  return images;
}

}  // namespace

void PictureTask::more_fields(Fields& f) {
  f("side", side_, {1, 256},
    "pixels a side that the model reads; those of the images or a divisor, by averaging");
  f("pixel_zero", Choice(zero_, {"token", "pad"}),
    "what a pixel of 0 is, the ground of Pathfinder: a grey like others, or padding that is left out "
    "(mean_over = all: masked)");
}

void PictureTask::more_model_fields(Fields& f) {
  f("patch", patch_, {1, 128},
    "side of the square of pixels that is one token; 1: each pixel is one, as in the benchmark");
}

void PictureTask::check_more(const Config&) const {
  check_side(resolution_, side_);
  if (patch_ == 1) return;
  if (side_ % patch_ != 0 || patch_ == side_)
    fail("model.patch = ", patch_, ". It must divide data.side = ", side_, " and be smaller.");
  if (zero_ == PixelZero::pad)
    fail("model.patch = ", patch_, " with data.pixel_zero = pad: a patch holds pixels of 0 and others. Use ",
         "data.pixel_zero = token, or model.patch = 1.");
}

LongTask::Tokens PictureTask::tokens() const {
  // Most of Pathfinder is ground: greys in 0 .. 1 leave its patches near to each other beside what tells
  // their places, and a model takes twice as many steps to leave chance (docs/results/lra.md).
  return {.vocabulary = 256,
          .fixed = true,
          .drop_zeros = zero_ == PixelZero::pad,
          .bytes = patch_ * patch_,
          .mean = greys_.mean,
          .deviation = greys_.deviation};
}

std::vector<Baseline> PictureTask::baselines(const Sequences& train_set, const Sequences& test_set) const {
  return {{"majority", majority(train_set, test_set)},
          {"histogram of pixels", byte_ngrams(train_set, test_set, 1, NgramFeature::frequency)}};
}

std::shared_ptr<TokenPicture> PictureTask::picture(std::string_view bytes) const {
  auto out = std::make_shared<TokenPicture>();
  out->height = out->width = side_;
  out->patch = patch_;
  out->pixels.resize(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    out->pixels[pixel_at(static_cast<int64_t>(i), side_, patch_)] = static_cast<uint8_t>(bytes[i]);
  return out;
}

std::string PictureTask::token_name(uint8_t, int64_t place) const {
  const int64_t across = side_ / patch_;
  return text(place / across, ",", place % across);
}

Sequences PictureTask::as_read(Sequences pictures) const {
  return patch_by_patch(shrunk(std::move(pictures), resolution_, side_), side_, patch_);
}

}  // namespace heed
