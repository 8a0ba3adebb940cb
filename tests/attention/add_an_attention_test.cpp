// Tests the variant of docs/how-to/own-attention.md: a new attention is one file and one line.
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"

namespace heed::variant {
Variant sigmoid();  // compiled out of the page
}

TEST_CASE("add_an_attention: the page's variant passes the battery") {
  const heed::Variant sigmoid = heed::variant::sigmoid();
  for (const heed::battery::Property& property : heed::battery::properties()) {
    INFO(property.name);
    CHECK(heed::battery::over_all_settings(sigmoid, property.holds) == "");
  }
}
