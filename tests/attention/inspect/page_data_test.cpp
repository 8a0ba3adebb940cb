// The numbers of a page come back as they went in: exactly, in steps, or as the largest of each row with a
// bound.
#include "heed/attention/inspect/page_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::string unpacked(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    held += 6;
    if (held >= 8) out += static_cast<char>(bits >> (held -= 8) & 255);
  }
  return out;
}

std::string part(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

template <class Number>
std::vector<Number> numbers_in(const std::string& json, const std::string& name) {
  const std::string bytes = unpacked(part(json, "\"" + name + "\":\"", "\""));
  std::vector<Number> out(bytes.size() / sizeof(Number));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(Number));
  return out;
}

int64_t occurrences(const std::string& text, const std::string& what) {
  int64_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

std::vector<float> waves(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = 1.3F * std::sin(static_cast<float>(i));
  return out;
}

MapView uniform_map(int64_t heads, int64_t length) {
  MapView map;
  map.name = "encoder.0";
  map.kind = "encoder self";
  map.heads = heads;
  map.queries = map.keys = length;
  map.weights.assign(static_cast<size_t>(heads * length * length), 1.0F / static_cast<float>(length));
  map.query_tokens.assign(static_cast<size_t>(length), "a");
  map.key_tokens = map.query_tokens;
  return map;
}

}  // namespace

TEST_CASE("page data: few numbers come back with every bit") {
  std::vector<float> numbers = waves(60);
  numbers[3] = NAN;
  const std::string json = picture::block_json(numbers, 2, 5, 6);
  CHECK(json.find("\"shape\":[2,5,6]") != std::string::npos);
  const auto back = numbers_in<float>(json, "bytes");
  REQUIRE(back.size() == numbers.size());
  CHECK(std::memcmp(back.data(), numbers.data(), numbers.size() * sizeof(float)) == 0);
}

TEST_CASE("page data: many numbers come back to half of 65,534 steps") {
  std::vector<float> numbers = waves(250'000);
  numbers[3] = NAN;
  const std::string json = picture::block_json(numbers, 1, 500, 500);
  const double low = std::stod(part(json, "\"low\":", ",")), high = std::stod(part(json, "\"high\":", ","));
  const auto codes = numbers_in<uint16_t>(json, "bytes");
  REQUIRE(codes.size() == numbers.size());
  CHECK(codes[3] == 65535);
  double apart = 0;
  for (size_t i = 0; i < codes.size(); ++i)
    if (i != 3) apart = std::max(apart, std::abs(low + (high - low) * codes[i] / 65534 - numbers[i]));
  CHECK(apart <= 0.51 * (high - low) / 65534);
}

TEST_CASE("page data: of long rows the largest are kept with their places, and a bound on the others") {
  const std::vector<float> numbers = waves(3 * 40);
  const std::string json = picture::largest_json(numbers, 1, 3, 40, 7);
  const double low = std::stod(part(json, "\"low\":", ",")), high = std::stod(part(json, "\"high\":", ","));
  const auto places = numbers_in<uint16_t>(json, "places"), codes = numbers_in<uint16_t>(json, "bytes");
  const auto rest = numbers_in<float>(part(json, "\"rest\":{", "}"), "bytes");
  REQUIRE(places.size() == 21);
  REQUIRE(rest.size() == 3);
  for (size_t row = 0; row < 3; ++row) {
    std::vector<bool> kept(40);
    for (size_t i = 0; i < 7; ++i) {
      const size_t place = places[row * 7 + i];
      if (i > 0) CHECK(place > places[row * 7 + i - 1]);
      kept[place] = true;
      CHECK(low + (high - low) * codes[row * 7 + i] / 65534 ==
            Approx(numbers[row * 40 + place]).margin(3e-5));
      CHECK(std::abs(numbers[row * 40 + place]) >= rest[row]);
    }
    float bound = 0;
    for (size_t place = 0; place < 40; ++place)
      if (!kept[place]) bound = std::max(bound, std::abs(numbers[row * 40 + place]));
    CHECK(bound == rest[row]);
  }
}

TEST_CASE("page data: long maps are tiles, with all single weights, the largest, or none, as bytes permit") {
  const MapView map = uniform_map(2, 40);
  HtmlOptions options;
  options.longest = 32;
  options.tiles = 16;
  options.long_bytes = 2 * 40 * 40 * 2;
  std::string json = picture::maps_json({map}, options);
  CHECK(json.find("\"tile\":[3,3]") != std::string::npos);
  CHECK(json.find("\"weights\":{\"view\":{\"shape\":[2,14,14]") != std::string::npos);
  CHECK(json.find("\"whole\":{\"shape\":[2,40,40],\"code\":\"f32\"") != std::string::npos);
  options.long_bytes /= 2;
  json = picture::maps_json({map}, options);
  CHECK(json.find("\"code\":\"top\",\"count\":10") != std::string::npos);
  options.long_bytes /= 2;
  CHECK(picture::maps_json({map}, options).find("\"whole\":null") != std::string::npos);
  options.longest = 40;
  CHECK(picture::maps_json({map}, options).find("\"tile\":[1,1]") != std::string::npos);
}

TEST_CASE(
    "page data: the optional parts of a map are there, tokens once for all maps, row sums of each head") {
  MapView map = uniform_map(2, 4);
  for (size_t i = 0; i < 16; ++i) map.weights[i] *= 0.5F;
  map.attribution = map.weights;
  map.rollout.assign(16, 0.25F);
  map.factor_width = 3;
  map.query_factors.assign(2 * 4 * 3, 1);
  map.key_factors.assign(2 * 4 * 3, 1);
  auto picture = std::make_shared<TokenPicture>();
  picture->height = picture->width = 4;
  picture->patch = 2;
  picture->pixels.assign(16, 7);
  map.picture = picture;
  const std::string json = picture::maps_json({map, map}, {});
  CHECK(json.find("\"tokens\":[[\"a\",\"a\",\"a\",\"a\"]]") != std::string::npos);
  CHECK(occurrences(json, "\"sums\":[[0.5,0.5],[1,1]]") == 2);
  CHECK(occurrences(json, "\"pixels\":") == 1);
  CHECK(occurrences(json, "\"picture\":0") == 2);
  CHECK(occurrences(json, "\"attribution\":{") == 2);
  CHECK(occurrences(json, "\"rollout\":{\"view\":{\"shape\":[1,4,4]") == 2);
  // All scores of a row are equal and so are all weights: a softmax explains them.
  CHECK(occurrences(json, "\"softmax\":true") == 2);
  map.key_factors[0] = 9;
  CHECK(picture::maps_json({map}, {}).find("\"softmax\":false") != std::string::npos);
}

TEST_CASE("page data: parts that do not fit the map are named") {
  const auto says = [](MapView map, const char* words) {
    CHECK_THROWS_WITH(picture::maps_json({map}, {}), containing("encoder.0") && containing(words));
  };
  MapView map = uniform_map(1, 4);
  map.attribution.assign(15, 0);
  says(map, "15 attributions for 16 weights");
  map = uniform_map(1, 4);
  map.rollout.assign(9, 0);
  says(map, "rollout has 9 numbers");
  map = uniform_map(1, 4);
  map.factor_width = 2;
  says(map, "factor_width 2");
  map = uniform_map(1, 4);
  auto picture = std::make_shared<TokenPicture>();
  picture->height = picture->width = 4;
  picture->pixels.assign(16, 7);
  map.picture = picture;
  says(map, "16 tokens of 1 x 1");
  picture->places = {0, 1, 2, 16};
  says(map, "square 16");
}
