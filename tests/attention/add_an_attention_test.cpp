// The variant of docs/add-an-attention.md keeps every promise: a new attention is one file and one line.
#include "tests/attention/battery.h"
#include "tests/catch.h"

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
