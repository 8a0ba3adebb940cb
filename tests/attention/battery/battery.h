// The battery: properties of every attention, as functions that report what is wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/attention/variant.h"
#include "heed/core/device.h"

namespace heed::battery {

/// How a host uses an attention.
enum class Mode { self, causal, cross };
const char* to_string(Mode mode);

/// One variant in one mode on one device.
struct Setting {
  Variant variant;
  Mode mode = Mode::self;
  Device device = Device::cpu;
  int64_t kv_heads = 0, head_dim = 0;
  Modifiers modifiers = {};
};

/// Every mode that the traits allow, on every device.
std::vector<Setting> settings(const Variant& variant);

/// What is wrong, as text; empty when the property holds.
using Report = std::string;

/// Gradients of parameters and inputs match central differences in double, with and without padding; every
/// parameter is listed and used.
Report gradient(const Setting& setting);
/// Changing a position leaves all earlier outputs bit-identical.
Report causality(const Setting& setting);
/// The last causal output equals the bidirectional one, in one call and step by step, for inputs up to 100
/// times as large as usual, unless the traits deny it.
Report last_row(const Setting& setting);
/// Garbage in padded keys, NaN and infinity too, changes neither outputs nor gradients and gets no gradient;
/// a row without keys gives zeros.
Report padding(const Setting& setting);
/// Packed sequences give the outputs and gradients of padded ones, with equal draws of dropout, too.
Report packed(const Setting& setting);
/// Decoding one or a few positions at a time equals one call.
Report steps(const Setting& setting);
/// Cross-attention with a reused cache equals that without; gradients through a cache that keeps its history
/// equal those of one call; reordered beams equal computed ones.
Report cache(const Setting& setting);
/// Rows sum to one where claimed, masked keys have no weight, map times values is the output, recording
/// changes nothing.
Report map(const Setting& setting);
/// Counted operations and bytes grow as declared when length or width doubles.
Report cost(const Setting& setting);
/// No tensor of a step survives it.
Report leaks(const Setting& setting);
/// One seed gives the same bits for any number of threads; devices agree with the CPU.
Report devices(const Setting& setting);
/// Options survive conversion to text and back; saved parameters give the same output.
Report round_trip(const Setting& setting);
/// Whatever the traits deny, and every illegal call, throws an Error with the reason.
Report refusal(const Setting& setting);

/// Grouped key heads, positions in attention, query-key normalisation, a cap, a sink: each is rejected with a
/// reason, or changes the output correctly, with correct gradients, padding and steps.
Report modifiers(const Setting& setting);

/// A named property.
struct Property {
  const char* name;
  Report (*holds)(const Setting&);
};
std::span<const Property> properties();

/// All findings of a property in all settings of a variant. An Error is a finding too.
Report over_all_settings(const Variant& variant, Report (*property)(const Setting&));

/// A variant whose default options are those of a spec such as "reformer:rounds=3", to test other options.
Variant with_options(const std::string& text);

}  // namespace heed::battery
