// Runs every property on every variant of variants.def; a new variant needs no code here.
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

namespace heed {
namespace battery {

std::span<const Property> properties() {
  static constexpr Property all[] = {{"gradient", gradient},
                                     {"causality", causality},
                                     {"padding", padding},
                                     {"packed", packed},
                                     {"steps", steps},
                                     {"cache", cache},
                                     {"map", map},
                                     {"cost", cost},
                                     {"leaks", leaks},
                                     {"devices", devices},
                                     {"round trip", round_trip},
                                     {"refusal", refusal},
                                     {"modifiers", modifiers},
                                     {"last row", last_row}};
  return all;
}

Report over_all_settings(const Variant& variant, Report (*property)(const Setting&)) {
  Report report;
  for (const Setting& setting : settings(variant)) {
    Report found;
    try {
      found = property(setting);
    } catch (const Error& error) {
      found = text("an Error: ", error.what());
    }
    if (!found.empty()) {
      note(report, variant.traits.name, ", ", to_string(setting.mode), ", ", heed::to_string(setting.device),
           ": ", found);
    }
  }
  return report;
}

}  // namespace battery

namespace {

void check_property(const Variant& variant, battery::Report (*property)(const battery::Setting&)) {
  const battery::Report report = battery::over_all_settings(variant, property);
  INFO(report);
  CHECK(report.empty());
}

}  // namespace

#define VARIANT(name)                                                                                     \
  TEST_CASE(#name ": gradients are those of the function", "[battery]") {                                 \
    check_property(variant::name(), battery::gradient);                                                   \
  }                                                                                                       \
  TEST_CASE(#name ": causal outputs ignore the future", "[battery]") {                                    \
    check_property(variant::name(), battery::causality);                                                  \
  }                                                                                                       \
  TEST_CASE(#name ": the last causal output is the two-sided one", "[battery]") {                         \
    check_property(variant::name(), battery::last_row);                                                   \
  }                                                                                                       \
  TEST_CASE(#name ": padding changes nothing", "[battery]") {                                             \
    check_property(variant::name(), battery::padding);                                                    \
  }                                                                                                       \
  TEST_CASE(#name ": packed sequences equal padded ones", "[battery]") {                                  \
    check_property(variant::name(), battery::packed);                                                     \
  }                                                                                                       \
  TEST_CASE(#name ": steps equal one call", "[battery]") {                                                \
    check_property(variant::name(), battery::steps);                                                      \
  }                                                                                                       \
  TEST_CASE(#name ": memory and its history", "[battery]") {                                              \
    check_property(variant::name(), battery::cache);                                                      \
  }                                                                                                       \
  TEST_CASE(#name ": the map is the output's", "[battery]") {                                             \
    check_property(variant::name(), battery::map);                                                        \
  }                                                                                                       \
  TEST_CASE(#name ": costs grow as declared", "[battery][cost]") {                                        \
    check_property(variant::name(), battery::cost);                                                       \
  }                                                                                                       \
  TEST_CASE(#name ": nothing outlives a step", "[battery]") {                                             \
    check_property(variant::name(), battery::leaks);                                                      \
  }                                                                                                       \
  TEST_CASE(#name ": same bits everywhere", "[battery]") {                                                \
    check_property(variant::name(), battery::devices);                                                    \
  }                                                                                                       \
  TEST_CASE(#name ": round trips", "[battery]") { check_property(variant::name(), battery::round_trip); } \
  TEST_CASE(#name ": refuses what it must", "[battery]") {                                                \
    check_property(variant::name(), battery::refusal);                                                    \
  }                                                                                                       \
  TEST_CASE(#name ": modifiers act or are refused", "[battery]") {                                        \
    check_property(variant::name(), battery::modifiers);                                                  \
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

TEST_CASE("battery: there are variants and fourteen properties", "[battery]") {
  CHECK(variants().size() >= 3);
  CHECK(battery::properties().size() == 14);
}

}  // namespace heed
