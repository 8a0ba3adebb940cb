// The page of models side by side: what it holds and what it refuses.
#include "heed/attention/inspect/side_by_side_page.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::vector<MapView> one_map(const std::vector<float>& weights) {
  MapView map{.name = "a", .kind = "cross", .heads = 2, .queries = 1, .keys = 2, .weights = weights};
  map.query_tokens = {"x"};
  map.key_tokens = {"y", "<z>"};
  return {map};
}

}  // namespace

TEST_CASE("side by side page: has the weights bit for bit and the pairs") {
  const std::vector<float> one{0.9F, 0.1F, 0.2F, 0.8F}, other{0.25F, 0.75F, 0.875F, 0.125F};
  SideBySide all{
      .title = "two", .caption = "x", .models = {{"one", one_map(one)}, {"other", one_map(other)}}};
  const std::string page = side_by_side_page(all);
  CHECK(page.find(picture::base64_floats(one)) != std::string::npos);
  CHECK(page.find(picture::base64_floats(other)) != std::string::npos);
  CHECK(page.find("\"one\":[0,0],\"other\":[0,1]") != std::string::npos);
  CHECK(page.find("\"one\":[0,1],\"other\":[0,0]") != std::string::npos);
  CHECK(page.find("<z>") == std::string::npos);

  all.models.pop_back();
  CHECK_THROWS_AS(side_by_side_page(all), Error);
  std::vector<MapView> third = one_map(other);
  third[0].key_tokens[0] = "w";
  all.models.emplace_back("third", third);
  CHECK_THROWS_WITH(side_by_side_page(all), containing("'y' for one and 'w'"));
}

TEST_CASE("side by side page: numbers are little-endian f32 in base64") {
  CHECK(picture::base64_floats({1.0F}) == "AACAPw==");
  CHECK(picture::base64_floats({}).empty());
}
