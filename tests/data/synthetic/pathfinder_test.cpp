// Pathfinder: drawing, brightness, distances, and that distances do not reveal the label.
#include "heed/data/synthetic/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "heed/core/io/files.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/baselines.h"
#include "heed/data/formats/png.h"
#include "heed/data/synthetic/pathfinder_brush.h"
#include "heed/tests/data/scratch.h"
#include "heed/tests/synced_files.h"

using namespace heed;

namespace {

/// Images of one side, drawn once for all tests.
struct Sample {
  explicit Sample(int64_t side, int64_t count) : options(pathfinder_options(side)) {
    images = pathfinder(count, 1, options, &facts);
  }
  PathfinderOptions options;
  std::vector<PathfinderFacts> facts;
  Sequences images;
};

const Sample& hard() {
  static const Sample sample(32, 4000);
  return sample;
}

double marker_distance(const PathfinderFacts& facts) {
  return std::hypot(static_cast<double>(facts.markers[0][0] - facts.markers[1][0]),
                    static_cast<double>(facts.markers[0][1] - facts.markers[1][1]));
}

int pixel(const Sample& sample, int64_t image, int64_t row, int64_t column) {
  return static_cast<uint8_t>(
      sample.images.at(image)[static_cast<size_t>(row * sample.options.side + column)]);
}

/// Pixels of an image that are brighter than `least` and hang together, by eight neighbours.
int64_t pieces(const Sample& sample, int64_t image, int least) {
  const int64_t side = sample.options.side;
  std::vector<bool> seen(static_cast<size_t>(side * side));
  int64_t found = 0;
  for (int64_t start = 0; start < side * side; ++start) {
    if (seen[static_cast<size_t>(start)] || pixel(sample, image, start / side, start % side) <= least)
      continue;
    ++found;
    std::vector<int64_t> left{start};
    seen[static_cast<size_t>(start)] = true;
    while (!left.empty()) {
      const int64_t at = left.back();
      left.pop_back();
      for (int64_t y = std::max<int64_t>(0, at / side - 1); y <= std::min(side - 1, at / side + 1); ++y) {
        for (int64_t x = std::max<int64_t>(0, at % side - 1); x <= std::min(side - 1, at % side + 1); ++x) {
          const int64_t next = y * side + x;
          if (seen[static_cast<size_t>(next)] || pixel(sample, image, y, x) <= least) continue;
          seen[static_cast<size_t>(next)] = true;
          left.push_back(next);
        }
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("pathfinder: the sets of the benchmark") {
  const PathfinderOptions path_x = pathfinder_options(128);
  CHECK(path_x.gaps == std::vector<int64_t>{2, 3});
  CHECK(path_x.contour == 14);
  CHECK(path_x.distractors == 8);
  CHECK(path_x.apart == 20);
  CHECK(pathfinder_options(32).distractors == 5);
  CHECK(pathfinder_options(64).marker == 2.5);
  CHECK(pathfinder_options(256).padding == 22);
  CHECK_THROWS_WITH(pathfinder_options(100), containing("Use 32, 64, 128 or 256"));
}

TEST_CASE("pathfinder: lanczos keeps flat pictures flat and the sum of others") {
  std::vector<float> flat(17 * 17, 200.0f);
  for (const float value : lanczos_down(flat, 17, 9)) CHECK(value == 200);
  std::vector<float> dot(32 * 32, 0.0f);
  for (int y = 14; y < 18; ++y) {
    for (int x = 14; x < 18; ++x) dot[static_cast<size_t>(y * 32 + x)] = 255;
  }
  double sum = 0;
  const std::vector<float> small = lanczos_down(dot, 32, 16);
  for (const float value : small) sum += static_cast<double>(value);
  // 16 pixels of 255 at four times the area; the negative lobes are cut off, so a little more.
  CHECK(sum / 255 == Approx(4).margin(0.6));
  CHECK(small[7 * 16 + 7] == small[8 * 16 + 8]);
}

TEST_CASE("pathfinder: half the images have both discs on one curve") {
  const Sample& s = hard();
  const auto same =
      static_cast<double>(std::count(s.images.labels.begin(), s.images.labels.end(), uint8_t{1}));
  CHECK(same / 4000 == Approx(0.5).margin(0.024));
  REQUIRE(s.images.count() == 4000);
  CHECK(s.images.at(0).size() == 1024);
}

TEST_CASE("pathfinder: black ground, distractors brightest, targets three quarters of them, discs half") {
  const Sample& s = hard();
  int64_t dark = 0;
  std::map<int, int64_t> at_discs;
  for (int64_t i = 0; i < 500; ++i) {
    int maximum = 0;
    for (const char value : s.images.at(i)) {
      maximum = std::max(maximum, static_cast<int>(static_cast<uint8_t>(value)));
      dark += value == 0 ? 1 : 0;
    }
    CHECK(maximum == 255);
    for (const auto& marker : s.facts[static_cast<size_t>(i)].markers)
      ++at_discs[pixel(s, i, marker[0], marker[1])];
  }
  CHECK(dark > 500 * 1024 / 3);
  // The middle of a disc is 1 where the brightest dash is what a thin line leaves of 2, and always the same.
  int64_t commonest = 0;
  for (const auto& [value, times] : at_discs) commonest = std::max(commonest, times);
  CHECK(commonest > 400);
  // How bright a dash is at most depends on its direction alone.
  const Brush brush(s.options, 1);
  std::vector<double> brightest;
  for (int degree = 0; degree < 360; ++degree) {
    const std::vector<float>& ink = brush.dash(degree * 3.14159265358979 / 180).ink;
    brightest.push_back(static_cast<double>(*std::max_element(ink.begin(), ink.end())));
  }
  PathfinderOptions only = s.options;
  only.distractors = 0;
  only.marker = 0;
  const Sequences targets = pathfinder(20, 3, only);
  only.distractors = 5;
  const Sequences both = pathfinder(20, 3, only);
  for (int64_t i = 0; i < 20; ++i) {
    // Both pictures begin with one pair of curves; beside distractors they have three quarters of their
    // brightness.
    int target = 0;
    for (size_t p = 0; p < 1024; ++p) {
      if (static_cast<uint8_t>(targets.at(i)[p]) == 255)
        target = std::max(target, static_cast<int>(static_cast<uint8_t>(both.at(i)[p])));
    }
    bool explained = false;
    for (const double one : brightest) {
      for (const double other : brightest)
        explained = explained || std::abs(target - 255 * 0.75 * one / other) <= 1;
    }
    CHECK(explained);
    CHECK(target < 255);
  }
}

TEST_CASE("pathfinder: fourteen dashes a curve, four a distractor, and none touch") {
  // Without discs, at a resolution where dashes have room, each dash is a piece of its own.
  PathfinderOptions options = pathfinder_options(128);
  options.gaps = {3};
  options.marker = 0;
  Sample s(128, 1);
  s.options = options;
  s.images = pathfinder(20, 4, options, &s.facts);
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t found = pieces(s, i, 60);
    CHECK(found >= 28);
    CHECK(found <= 28 + 8 * 4);
    CHECK(found > 28 + 4 * 4);  // most distractors find room
  }
}

TEST_CASE("pathfinder: the beginnings are as far apart as they should be") {
  // A dash on a first beginning avoids the 14 outermost pixels of 32, so that this is in rows and columns 13
  // to 16. The second is 7 pixels from it, up to its rounding, so outside. Half of the discs are on each.
  const Sample& s = hard();
  double farthest = 0;
  int64_t outside = 0;
  for (const PathfinderFacts& facts : s.facts) {
    for (const auto& marker : facts.markers) {
      for (const int64_t part : marker) CHECK((part >= 0 && part < 32));
    }
    CHECK(facts.gap == 1);
    const auto beyond = [](int64_t place) {
      return static_cast<double>(std::max({int64_t{0}, 13 - place, place - 16}));
    };
    const double distance = std::hypot(beyond(facts.markers[0][0]), beyond(facts.markers[0][1]));
    farthest = std::max(farthest, distance);
    outside += distance > 0 ? 1 : 0;
  }
  CHECK(farthest >= 7);
  CHECK(farthest < 7.75);
  CHECK(outside > 1800);
  CHECK(outside < 2200);
}

TEST_CASE("pathfinder: neither the distance of the discs nor the greys tell the label") {
  const Sample& s = hard();
  // A table from distance (in two pixels) to the commoner label, counted on one half, scored on the other.
  std::map<int64_t, int64_t> balance;
  int64_t right = 0;
  for (size_t i = 0; i < 4000; ++i) {
    const auto bin = static_cast<int64_t>(marker_distance(s.facts[i]) / 2);
    if (i < 2000)
      balance[bin] += s.images.labels[i] == 1 ? 1 : -1;
    else
      right += (balance[bin] > 0 ? 1 : 0) == s.images.labels[i] ? 1 : 0;
  }
  CHECK(static_cast<double>(right) / 2000 < 0.57);
  CHECK(byte_ngrams(s.images.slice(0, 2000), s.images.slice(2000, 4000), 1, NgramFeature::frequency) < 0.55);
}

TEST_CASE("pathfinder: the same for any number of threads, others for another seed") {
  const int before = threads();
  const PathfinderOptions options = pathfinder_options(32);
  set_threads(1);
  const std::string one = pathfinder(200, 7, options).sha256();
  set_threads(3);
  CHECK(one == pathfinder(200, 7, options).sha256());
  set_threads(before);
  CHECK(one != pathfinder(200, 8, options).sha256());
  CHECK_THROWS_WITH(pathfinder(0, 1, options), containing("count of 0"));
}

TEST_CASE("pathfinder: folders of images are written and read, and empty files are left out") {
  const Scratch scratch;
  const PathfinderOptions options = pathfinder_options(32);
  std::vector<PathfinderFacts> facts;
  const Sequences images = pathfinder(1005, 2, options, &facts);
  synced();
  write_pathfinder(scratch.path(), images, facts, options);
  CHECK(synced().back() == text("all of ", scratch.path().string()));  // for a thousand files at once
  int64_t left_out = -1;
  CHECK(read_pathfinder(scratch.path(), 32, &left_out).sha256() == images.sha256());
  CHECK(left_out == 0);
  const std::string metadata = io::read(scratch.path() / "metadata/1.npy");
  CHECK_THAT(metadata,
             Catch::Matchers::StartsWith(text("imgs/1 sample_0.png 0 ", static_cast<int>(images.labels[1000]),
                                              " 1 14 4 2 0.5 1 1\n")));
  scratch.file("imgs/0/sample_172.png", "");
  CHECK(read_pathfinder(scratch.path(), 32, &left_out).count() == 1004);
  CHECK(left_out == 1);
  CHECK_THAT(refusal(Fault::data, [&] { read_pathfinder(scratch.path(), 64); }),
             containing("32 x 32 pixels; 64 x 64"));
  scratch.file("imgs/0/sample_3.png", "no image");
  CHECK_THAT(refusal(Fault::data, [&] { read_pathfinder(scratch.path(), 32); }), containing("sample_3.png"));
  const Scratch empty;
  CHECK_THAT(refusal(Fault::data, [&] { read_pathfinder(empty.path(), 32); }), containing("metadata"));
}

TEST_CASE("pathfinder: metadata that is none is refused with the line") {
  const auto refused = [](const std::string& all) {
    return refusal(Fault::data, [&] { parse_pathfinder_metadata(all, "0.npy"); });
  };
  CHECK(parse_pathfinder_metadata("imgs/0 a.png 0 1 1.0 14\n\nimgs/0  b.png\t1 0\n", "0.npy").size() == 2);
  CHECK_THAT(refused("imgs/0 a.png 0 1\nimgs/0 b.png 1\n"), containing("0.npy:2: 3 fields"));
  CHECK_THAT(refused("imgs/0 a.png 0 2\n"), containing("is '2'"));
  CHECK_THAT(refused("../.. a.png 0 1\n"), containing("leads out"));
  CHECK_THAT(refused("/etc a.png 0 1\n"), containing("leads out"));
}
