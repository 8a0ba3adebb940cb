// Integer options of every variant: each declares its range, errors name it, and the largest value costs a
// short input no giant loop or tensor.
#include "heed/attention/counted_cost.h"
#include "heed/core/operation_count.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"
#include "heed/tests/columns.h"

namespace heed {
namespace {

using battery::Mode;

struct Counted {
  const Variant* variant;
  OptionText option;
};

/// Every integer option but seeds, which may be anything.
std::vector<Counted> counted_options() {
  std::vector<Counted> out;
  for (const Variant& variant : variants()) {
    for (const OptionText& option : variant.options({variant.traits.name, {}}))
      if (option.kind == "integer" && option.name != "seed") out.push_back({&variant, option});
  }
  return out;
}

std::string refusal_of(const Variant& variant, const std::string& name, const std::string& value) {
  try {
    variant.options({variant.traits.name, {{name, value}}});
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::usage);
    return error.what();
  }
  return "none";
}

/// What making an attention and one step on 8 tokens take.
struct Taken {
  double operations = 0, bytes = 0;
};

Taken taken_by(const battery::Setting& setting) {
  const battery::Sizes sizes{.batch = 1, .queries = 8, .keys = 8, .width = 8, .heads = 2};
  Count::reset();
  reset_peak(Device::cpu);
  const int64_t before = memory_use(Device::cpu).live;
  const battery::Host host = battery::host_of(setting, sizes);
  Rng noise(3);
  noise.advance();
  host.forward({.rng = &noise});  // training: some loops run there only
  const auto made = static_cast<double>(Count::flops().load());
  const auto held = static_cast<double>(memory_use(Device::cpu).peak - before);
  const StepCost step = count_step(*host.attention, host.mask(), host.queries, host.keys);
  return {.operations = made + step.operations, .bytes = std::max(held, step.bytes)};
}

}  // namespace

TEST_CASE("option ranges: every whole number declares its own, and errors name it") {
  const Columns columns("500");
  for (const auto& [variant, option] : counted_options()) {
    CAPTURE(variant->traits.name, option.name);
    REQUIRE(option.range);
    CHECK(option.range->min >= 0);
    CHECK(option.range->max <= max_integer);
    for (const int64_t beyond : {option.range->min - 1, option.range->max + 1, max_integer + 1}) {
      CHECK_THAT(refusal_of(*variant, option.name, text(beyond)),
                 containing(text("attention '", variant->traits.name, "': ", option.name, " = ", beyond,
                                 " is not legal; it takes a whole number from ", option.range->min, " to ",
                                 option.range->max)));
    }
    CHECK_THAT(variants_text({.only = variant}),
               containing(text("integer from ", option.range->min, " to ", option.range->max, "  ")));
  }
}

TEST_CASE("option ranges: a billion and the largest legal value end, with counted work and memory",
          "[slow]") {
  for (const auto& [variant, option] : counted_options()) {
    CAPTURE(variant->traits.name, option.name);
    REQUIRE(option.range);
    const int64_t maximum = option.range->max;
    if (maximum < max_integer)
      CHECK_THAT(refusal_of(*variant, option.name, text(max_integer)), containing("is not legal"));
    const std::string spec = text(variant->traits.name, ":", option.name, "=", maximum);
    for (const Mode mode : {Mode::self, Mode::causal}) {
      if (mode == Mode::self ? !variant->traits.bidirectional : !variant->traits.causal) continue;
      Taken taken;
      try {
        taken = taken_by({.variant = battery::with_options(spec), .mode = mode});
      } catch (const Error& error) {
        CHECK(error.fault() == Fault::usage);  // such as more dilated heads than there are heads
        continue;
      }
      CHECK(taken.operations < 1e10);
      CHECK(taken.bytes < 1e9);
    }
  }
}

}  // namespace heed
