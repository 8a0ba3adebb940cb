// Runs every property on every variant of variants.def; a new variant needs no code here.
#include "heed/tests/attention/battery/battery.h"

#include "heed/tests/catch.h"

namespace heed {
namespace {

void hold(const Variant& variant, battery::Report (*property)(const battery::Setting&)) {
  const battery::Report report = battery::over_all_settings(variant, property);
  INFO(report);
  CHECK(report.empty());
}

}  // namespace

#define VARIANT(name)                                                                                      \
  TEST_CASE(#name ": gradients are those of the function", "[battery]") {                                  \
    hold(variant::name(), battery::gradient);                                                              \
  }                                                                                                        \
  TEST_CASE(#name ": causal outputs ignore the future", "[battery]") {                                     \
    hold(variant::name(), battery::causality);                                                             \
  }                                                                                                        \
  TEST_CASE(#name ": the last causal output is the two-sided one", "[battery]") {                          \
    hold(variant::name(), battery::last_row);                                                              \
  }                                                                                                        \
  TEST_CASE(#name ": padding changes nothing", "[battery]") { hold(variant::name(), battery::padding); }   \
  TEST_CASE(#name ": steps equal one call", "[battery]") { hold(variant::name(), battery::steps); }        \
  TEST_CASE(#name ": memory and its history", "[battery]") { hold(variant::name(), battery::cache); }      \
  TEST_CASE(#name ": the map is the output's", "[battery]") { hold(variant::name(), battery::map); }       \
  TEST_CASE(#name ": costs grow as declared", "[battery][cost]") { hold(variant::name(), battery::cost); } \
  TEST_CASE(#name ": nothing outlives a step", "[battery]") { hold(variant::name(), battery::leaks); }     \
  TEST_CASE(#name ": same bits everywhere", "[battery]") { hold(variant::name(), battery::devices); }      \
  TEST_CASE(#name ": round trips", "[battery]") { hold(variant::name(), battery::round_trip); }            \
  TEST_CASE(#name ": refuses what it must", "[battery]") { hold(variant::name(), battery::refusal); }      \
  TEST_CASE(#name ": modifiers act or are refused", "[battery]") {                                         \
    hold(variant::name(), battery::modifiers);                                                             \
  }
#include "heed/attention/variants.def"
#undef VARIANT

TEST_CASE("battery: variants deny a last row only where it differs", "[battery]") {
  for (Variant variant : variants()) {
    if (variant.traits.last_row) continue;
    CAPTURE(variant.traits.name);
    CHECK((variant.traits.causal && variant.traits.bidirectional));
    variant.traits.last_row = true;
    CHECK_FALSE(battery::over_all_settings(variant, battery::last_row).empty());
  }
}

TEST_CASE("battery: there are variants and thirteen properties", "[battery]") {
  CHECK(variants().size() >= 3);
  CHECK(battery::properties().size() == 13);
}

}  // namespace heed
