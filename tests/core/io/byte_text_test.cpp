// Byte counts as text.
#include "heed/core/io/byte_text.h"

#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("bytes text: three digits and a unit") {
  CHECK(bytes_text(0) == "0 bytes");
  CHECK(bytes_text(1) == "1 byte");
  CHECK(bytes_text(999) == "999 bytes");
  CHECK(bytes_text(6553) == "6.6 kB");
  CHECK(bytes_text(65536) == "66 kB");
  CHECK(bytes_text(2300000) == "2.3 MB");
  CHECK(bytes_text(231400000) == "231 MB");
  CHECK(bytes_text(41000000000) == "41.0 GB");
}
