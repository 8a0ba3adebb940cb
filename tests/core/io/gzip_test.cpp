// Gzip: round trips, limits, damage.
#include "heed/core/io/gzip.h"

#include "heed/core/error.h"
#include "heed/tests/catch.h"
#include "heed/tests/deflate.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

constexpr int64_t cap = 10'000'000;

std::string sample() {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i * i % 997) + "\n";
  return text;
}

}  // namespace

TEST_CASE("gzip: what is deflated inflates to the same") {
  for (const std::string& text : {std::string(), std::string("x"), sample(), std::string(3'000'000, 'y')}) {
    const std::string packed = deflate(text);
    CHECK(is_gzip(packed));
    CHECK(inflate(packed, cap) == text);
    CHECK(deflate(text) == packed);
  }
  CHECK_FALSE(is_gzip("plain text"));
  CHECK_FALSE(is_gzip("\x1f\x8b"));
}

TEST_CASE("gzip: members follow each other") {
  const std::string two = deflate("first ") + deflate("second");
  CHECK(inflate(two, cap) == "first second");
  CHECK(inflate(two + std::string(100, '\0'), cap) == "first second");
  CHECK_THROWS_WITH(inflate(two + "garbage", cap), containing("after its end"));
}

TEST_CASE("gzip: the cap holds exactly") {
  const std::string text = sample();
  const std::string packed = deflate(text);
  const auto size = static_cast<int64_t>(text.size());
  CHECK(inflate(packed, size) == text);
  CHECK(fault_of([&] { inflate(packed, size - 1); }) == Fault::data);
  CHECK_THROWS_WITH(inflate(deflate(std::string(50'000'000, '\0')), 1000),
                    containing("more than the 1000 bytes"));
}

TEST_CASE("gzip: every truncation is refused") {
  const std::string packed = deflate(sample());
  for (size_t length = 0; length < packed.size(); length += length < 64 ? 1 : 97) {
    CHECK(fault_of([&] { inflate(std::string_view(packed).substr(0, length), cap, "file.gz"); }) ==
          Fault::data);
  }
  CHECK_THROWS_WITH(inflate(std::string_view(packed).substr(0, packed.size() - 1), cap, "file.gz"),
                    containing("file.gz is cut short"));
}

TEST_CASE("gzip: flipped bits are refused or harmless") {
  const std::string text = sample();
  const std::string packed = deflate(text);
  for (size_t at = 0; at < packed.size(); at += 1 + packed.size() / 400) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = packed;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      try {
        const std::string out = inflate(flipped, cap);
        CHECK((out == text));  // flags and time of the header change nothing
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::data);
      }
    }
  }
}

TEST_CASE("gzip: text that packs a hundredfold is a bomb, and is refused before it goes off") {
  const std::string bomb = deflate(std::string(20'000'000, 'a'));
  CHECK(inflate(bomb, 20'000'000).size() == 20'000'000);
  CHECK_THROWS_WITH(inflate_text(bomb, 20'000'000, "a.gz"),
                    containing("a.gz inflates to more than 100 times its size") && containing("cap"));
  const std::string small(1 << 20, 'a');
  CHECK(inflate_text(deflate(small), 1 << 20) == small);
}

TEST_CASE("gzip: the start of a file is read without the rest") {
  const std::string packed = deflate("0123456789");
  CHECK(inflate_start(packed, 4) == "0123");
  CHECK(inflate_start(packed, 100) == "0123456789");
  CHECK(inflate_start(packed, 0).empty());
  CHECK_THROWS_AS(inflate_start(packed.substr(0, 11), 4), Error);
}
