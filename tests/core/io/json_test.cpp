// JSON: strict parsing, and writing that reads back.
#include "heed/core/io/json.h"

#include <cmath>
#include <limits>

#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

TEST_CASE("json: values are read as what they are") {
  const Json json =
      parse_json(R"( {"a": [1, 2.5, "x\u00e9\n", true, null, -7], "b": {"c": 18446744073709551615}} )", "t");
  const Json::List& list = json.at("a").list();
  CHECK(list[0].integer() == 1);
  CHECK(list[1].real() == 2.5);
  CHECK(list[2].text() == "x\xc3\xa9\n");
  CHECK(list[3].boolean());
  CHECK(list[4].is_null());
  CHECK(std::isnan(list[4].real()));
  CHECK(list[5].integer() == -7);
  CHECK_FALSE(json.at("b").at("c").is_integer());
  CHECK(json.at("b").at("c").real() == 18446744073709551616.0);
  CHECK(json.find("missing") == nullptr);
  CHECK_THROWS_WITH(json.at("missing"), containing("'missing'"));
  CHECK_THROWS_WITH(json.at("a").text(), containing("a list stands where text is needed"));
  CHECK(fault_of([&] { (void)list[1].integer(); }) == Fault::data);
}

TEST_CASE("json: what is written reads back the same") {
  Json json = Json::object({{"z", 1}, {"a", 0.1}, {"text", "quote \" back \\ line \n \xc3\xa9"}});
  json.set("list", Json(Json::List{1, 2.0, true, Json(), Json::object()}));
  json.set("z", 2);
  CHECK(json.dump() ==
        "{\"z\": 2, \"a\": 0.1, \"text\": \"quote \\\" back \\\\ line \\n \xc3\xa9\", \"list\": [1, 2.0, "
        "true, null, {}]}");
  CHECK(parse_json(json.dump(2), "t").dump() == json.dump());
  for (const double value : {0.1, 1e300, 5e-324, 1.0 / 3, -0.0, 123456789.0, 1e15, 1e16, 1e17}) {
    const Json back = parse_json(Json(value).dump(), "t");
    CHECK(std::signbit(back.real()) == std::signbit(value));
    CHECK(back.real() == value);
    CHECK_FALSE(back.is_integer());
  }
  const int64_t least = std::numeric_limits<int64_t>::min();
  CHECK(parse_json(Json(least).dump(), "t").integer() == least);
  CHECK(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  CHECK(Json("\xff").dump() == "\"\xef\xbf\xbd\"");  // what is no UTF-8 cannot be written as it is
}

TEST_CASE("json: what is no JSON is refused with its place") {
  for (const char* bad : {"", "{", "[1,]", "{\"a\"}", "{\"a\": 1,}", "[1] x", "nul", "'a'", "[1e999]",
                          "\"\xff\"", "[01]", "{\"a\": 1, \"a\": 2}", "\"\n\"", "[1 2]", "NaN"}) {
    INFO(bad);
    CHECK(fault_of([&] { parse_json(bad, "name"); }) == Fault::data);
    CHECK_THROWS_WITH(parse_json(bad, "name.json"), containing("name.json"));
  }
  CHECK_THROWS_WITH(parse_json("{\"a\": 1, \"a\": 2}", "t"), containing("the member 'a' twice"));
  CHECK_THROWS_WITH(parse_json("[1, x]", "t"), containing("byte 5"));
}

TEST_CASE("json: depth and number of values are bounded") {
  CHECK(fault_of([] { parse_json(std::string(1'000'000, '['), "t"); }) == Fault::data);
  const std::string fine = std::string(64, '[') + std::string(64, ']');
  CHECK(parse_json(fine, "t").dump() == fine);
  CHECK(fault_of([&] { parse_json("[" + fine + "]", "t"); }) == Fault::data);
  CHECK_THROWS_WITH(parse_json("[1, 2, 3]", "t", {.values = 3}), containing("more than 3 values"));
}
