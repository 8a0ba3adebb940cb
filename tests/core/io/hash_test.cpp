// Checksums against the test vectors of their standards.
#include "heed/core/io/hash.h"

#include <algorithm>

#include "heed/tests/catch.h"

using namespace heed;

namespace {

std::string noise(size_t count) {
  std::string out;
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    out += static_cast<char>(state >> 24);
  }
  return out;
}

}  // namespace

TEST_CASE("hash: sha256 gives the published digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("hash: sha256 does not depend on the pieces") {
  const std::string bytes = noise(1000);
  const std::string whole = sha256_hex(bytes);
  for (size_t piece = 1; piece < 200; piece += 7) {
    Sha256 sum;
    for (size_t at = 0; at < bytes.size(); at += piece) sum.update(std::string_view(bytes).substr(at, piece));
    CHECK(sum.hex() == whole);
    CHECK(sum.hex() == whole);  // asking does not change it
  }
}

TEST_CASE("hash: sha256 has one digest for each length around a block") {
  std::vector<std::string> digests;
  for (size_t length = 50; length < 140; ++length) digests.push_back(sha256_hex(std::string(length, 'x')));
  // From another implementation: 55, 56, 63, 64 and 119 times x.
  CHECK(digests[5] == "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(digests[6] == "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(digests[13] == "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  CHECK(digests[14] == "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  CHECK(digests[69] == "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  std::sort(digests.begin(), digests.end());
  CHECK(std::unique(digests.begin(), digests.end()) == digests.end());
}

TEST_CASE("hash: crc32c gives the published sums") {
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c("") == 0u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);  // RFC 3720, B.4
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("hash: crc32c goes on and does not depend on the instructions") {
  const std::string bytes = noise(300);
  for (size_t cut = 0; cut <= bytes.size(); cut += 11) {
    const std::string_view first = std::string_view(bytes).substr(0, cut);
    const std::string_view second = std::string_view(bytes).substr(cut);
    CHECK(crc32c(second, crc32c(first)) == crc32c(bytes));
    CHECK(detail::crc32c_table(second, crc32c(first)) == crc32c(bytes));
    CHECK(detail::crc32c_table(first, 0) == crc32c(first));
  }
}
