// tests core/io/base64.h
#include "heed/core/io/base64.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("base64: the texts of RFC 4648 come back") {
  for (const auto& [letters, bytes] :
       {std::pair{"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYmFy", "foobar"}})
    CHECK(from_base64(letters) == std::string(bytes));
  CHECK(from_base64("+/+/") == std::string("\xfb\xff\xbf"));
}

TEST_CASE("base64: other texts are none") {
  for (const char* letters : {"Z", "Zg", "Zg=", "Z===", "Zm9v\n", "Zm 9", "Zm9-", "=Zm9",
                              "Zg=="
                              "Zg=="})
    CHECK(from_base64(letters) == std::nullopt);
}
