// Synthetic digits: shape, variety, and difficulty.
#include "heed/data/synthetic/digits.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "heed/core/parallel/thread_pool.h"
#include "heed/data/baselines.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

constexpr size_t area = 28 * 28;

const LabelledImages& sample() {
  static const LabelledImages drawn = digits(4000, 1);
  return drawn;
}

}  // namespace

TEST_CASE("digits: the form of MNIST, and labels in equal numbers") {
  const LabelledImages& drawn = sample();
  CHECK(drawn.images.count == 4000);
  CHECK(drawn.images.rows == 28);
  CHECK(drawn.images.columns == 28);
  CHECK(drawn.images.pixels.size() == 4000 * area);
  for (uint8_t digit = 0; digit < 10; ++digit) {
    CHECK(std::count(drawn.labels.begin(), drawn.labels.end(), digit) == 400);
  }
  const std::vector<uint8_t> start(drawn.labels.begin(), drawn.labels.begin() + 20);
  CHECK(!std::is_sorted(start.begin(), start.end()));
  CHECK_THROWS_WITH(digits(0, 1), containing("1 .. 10000000"));
}

TEST_CASE("digits: the same for any number of threads, others for another seed") {
  const int before = threads();
  set_threads(1);
  const LabelledImages one = digits(500, 7);
  set_threads(3);
  const LabelledImages three = digits(500, 7);
  set_threads(before);
  CHECK(one.images.pixels == three.images.pixels);
  CHECK(one.labels == three.labels);
  CHECK(digits(500, 8).images.pixels != one.images.pixels);
}

TEST_CASE("digits: ink in the middle, paper around it, and no two images alike") {
  const LabelledImages& drawn = sample();
  std::set<std::vector<uint8_t>> distinct;
  double ink = 0;
  int64_t border = 0;
  for (int64_t i = 0; i < drawn.images.count; ++i) {
    const uint8_t* image = &drawn.images.pixels[static_cast<size_t>(i) * area];
    distinct.emplace(image, image + area);
    int64_t sum = 0;
    for (size_t pixel = 0; pixel < area; ++pixel) {
      sum += image[pixel];
      const size_t row = pixel / 28, column = pixel % 28;
      if (row == 0 || row == 27 || column == 0 || column == 27) border += image[pixel] > 0;
    }
    const double mean = static_cast<double>(sum) / area;
    if (mean < 5 || mean > 90) FAIL("image " << i << " has a mean of " << mean);
    if (*std::max_element(image, image + area) < 150) FAIL("image " << i << " is faint");
    ink += mean;
  }
  CHECK(distinct.size() == 4000);
  // MNIST has a mean of 33.
  CHECK(ink / 4000 > 22);
  CHECK(ink / 4000 < 45);
  CHECK(border < 4000);
}

TEST_CASE("digits: the nearest mean of a class is right often, but not always") {
  const LabelledImages& drawn = sample();
  std::array<std::array<double, area>, 10> mean{};
  std::array<double, 10> count{};
  constexpr int64_t training = 3000;
  for (int64_t i = 0; i < training; ++i) {
    const uint8_t digit = drawn.labels[static_cast<size_t>(i)];
    ++count[digit];
    for (size_t p = 0; p < area; ++p)
      mean[digit][p] += drawn.images.pixels[static_cast<size_t>(i) * area + p];
  }
  for (size_t digit = 0; digit < 10; ++digit) {
    for (double& value : mean[digit]) value /= count[digit];
  }
  int64_t right = 0;
  for (int64_t i = training; i < drawn.images.count; ++i) {
    std::array<double, 10> distance{};
    for (size_t digit = 0; digit < 10; ++digit) {
      for (size_t p = 0; p < area; ++p) {
        const double off = drawn.images.pixels[static_cast<size_t>(i) * area + p] - mean[digit][p];
        distance[digit] += off * off;
      }
    }
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() ==
             drawn.labels[static_cast<size_t>(i)];
  }
  const double share = static_cast<double>(right) / static_cast<double>(drawn.images.count - training);
  CAPTURE(share);
  CHECK(share > 0.60);
  CHECK(share < 0.97);
}

TEST_CASE("digits: those on a background are not told by their greys, and have no pixel of 0") {
  const Sequences all = digits_on_background(3000, 1);
  CHECK(all.at(0).size() == 1024);
  CHECK(all.bytes.find('\0') == std::string::npos);
  CHECK(byte_ngrams(all.slice(0, 2000), all.slice(2000, 3000), 1, NgramFeature::frequency) < 0.25);
}

TEST_CASE("digits: those on a background are the same for any number of threads, and progress is told") {
  const int before = threads();
  set_threads(1);
  const std::string one = digits_on_background(1300, 7).sha256();
  set_threads(3);
  int64_t heard = 0;
  CHECK(one == digits_on_background(1300, 7, [&](int64_t done) { heard = done; }).sha256());
  CHECK(heard == 1300);
  CHECK(one != digits_on_background(1300, 8).sha256());
  set_threads(before);
}
