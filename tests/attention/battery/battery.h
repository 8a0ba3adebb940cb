// The battery: what every way of attending promises, as functions that say what is wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "attention/variant.h"
#include "core/device.h"

namespace heed::battery {

/// How a host uses an attention.
enum class Mode { self, causal, cross };
const char* to_string(Mode mode);

/// One variant, one use, one device.
struct Setting {
  Variant variant;
  Mode mode = Mode::self;
  Device device = Device::cpu;
  int64_t key_heads = 0, head_width = 0;
  Modifiers modifiers = {};
};

/// Every use that the traits allow, on every device.
std::vector<Setting> settings(const Variant& variant);

/// What is wrong, in words; empty where the promise holds.
using Report = std::string;

/// Parameters and both inputs against central differences in double, with and without padding; and every
/// parameter is listed and used.
Report gradient(const Setting& setting);
/// Changing a position leaves all outputs before it as they were, to the bit.
Report causality(const Setting& setting);
/// The last causal output is the two-sided one, in one call and step by step, for inputs up to 100 times as
/// large as usual, unless the traits deny it.
Report last_row(const Setting& setting);
/// Garbage in padded keys changes nothing and gets no gradient; a row without keys gives zeros; nothing is
/// NaN.
Report padding(const Setting& setting);
/// One position at a time, or a few, against one call.
Report steps(const Setting& setting);
/// Cross-attention with reused memory against without; gradients through a memory that keeps its history
/// against those of one call; beams reordered against beams computed.
Report memory(const Setting& setting);
/// Rows sum to one where claimed, nothing masked has weight, map times values is the output, looking changes
/// nothing.
Report map(const Setting& setting);
/// Counted operations and bytes grow as declared when length or width doubles.
Report cost(const Setting& setting);
/// Nothing that a step makes stays alive after it.
Report leaks(const Setting& setting);
/// The same seed gives the same bits, for any number of threads; other devices agree with the CPU.
Report devices(const Setting& setting);
/// Options to text and back; saved parameters give the same output.
Report round_trip(const Setting& setting);
/// What the traits deny, and what is no legal call, is an Error that says why.
Report refusal(const Setting& setting);

/// Grouped key heads, positions inside, normalised queries and keys, a cap, a sink: each is refused with the
/// reason, or changes the output as it should, with true gradients, padding and steps.
Report modifiers(const Setting& setting);

/// A property with its name.
struct Property {
  const char* name;
  Report (*holds)(const Setting&);
};
std::span<const Property> properties();

/// What a property finds wrong in any setting of a variant, each with its setting. An Error is a finding too.
Report over_all_settings(const Variant& variant, Report (*property)(const Setting&));

/// The variant of a spec such as "reformer:rounds=3", its options being the defaults: what holds for a
/// variant has to hold for every way of using it.
Variant with_options(const std::string& text);

}  // namespace heed::battery
