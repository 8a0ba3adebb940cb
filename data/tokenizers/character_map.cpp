// Walks the double array of a sentencepiece normaliser.
#include "heed/data/tokenizers/character_map.h"

#include <utf8proc.h>

#include <algorithm>

#include "heed/core/error.h"
#include "heed/data/text/code_ranges.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

constexpr size_t header_bytes = 4;       // they hold the size of the units
constexpr size_t max_cluster_bytes = 5;  // a longer cluster is not replaced as a whole

/// Little-endian 32-bit number at an offset.
uint32_t number_at(std::string_view table, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(table[offset + i]);
  return value;
}

/// The offset of a unit: bits 10 to 30, which bit 9 shifts by 8.
size_t offset_of(uint32_t unit) { return size_t{unit >> 10} << ((unit & 0x200) >> 6); }
/// Bit 8 says that there is a leaf.
bool has_leaf(uint32_t unit) { return (unit & 0x100) != 0; }
/// The position that a leaf holds: all bits but 31, which is set in a leaf.
size_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
/// The byte that leads to a unit; no byte for a leaf.
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }

/// Marks that extend a cluster and came after Unicode 15.
constexpr CodeRange marks_after_unicode_15[] = {
    {0x897, 0x897},     {0x1ACF, 0x1ADD},   {0x1AE0, 0x1AEB},   {0x10D69, 0x10D6D}, {0x10EFA, 0x10EFC},
    {0x113B8, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0},
    {0x113D2, 0x113D2}, {0x113E1, 0x113E2}, {0x11B60, 0x11B67}, {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F},
    {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}};

/// A code point that utf8proc's tables of Unicode 15 treat as the newest ones treat `code`.
char32_t like_in_unicode_15(char32_t code) {
  if (is_in(marks_after_unicode_15, code)) return 0x300;
  if (code == 0x113D1) return 0x600;                                        // begins a cluster
  if (code == 0x2065 || (code >= 0xFFF0 && code <= 0xFFF8)) return 0x2028;  // reserved for controls
  return code;
}

/// The end of the cluster that begins at byte `begin`.
size_t cluster_end(std::string_view text, size_t begin) {
  utf8proc_int32_t state = 0;
  size_t at = begin;
  char32_t before = like_in_unicode_15(next_code_point(text, at));
  while (at < text.size()) {
    const size_t here = at;
    const char32_t code = like_in_unicode_15(next_code_point(text, at));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                         static_cast<utf8proc_int32_t>(code), &state))
      return here;
    before = code;
  }
  return at;
}

}  // namespace

void check_character_map(std::string_view table, const ReportDamage& report) {
  if (table.size() <= header_bytes) report(0, "a table that is cut short");
  const size_t size = number_at(table, 0);
  if (size == 0 || size % 1024 != 0 || size >= table.size() - header_bytes)
    report(0, "the size of a table that does not fit");
  const size_t behind = header_bytes + size;
  const std::string_view replacements = table.substr(behind);
  if (replacements.back() != '\0') report(behind, "a replacement that does not end");
  if (const size_t bad = invalid_utf8(replacements); bad != std::string_view::npos)
    report(behind + bad, "a replacement that is no text");
  const size_t num_units = size / 4;
  for (size_t i = 0; i < num_units; ++i) {
    const size_t at = header_bytes + 4 * i;
    const uint32_t value = number_at(table, at);
    if (value >> 31 != 0 && i > 0) continue;  // a leaf is checked at the unit that leads to it
    const size_t next = i ^ offset_of(value);
    const bool is_inside = (next | 0xFF) < num_units;  // the 256 units that one step can reach are a block
    if (!is_inside ||
        (has_leaf(value) && value_of(number_at(table, header_bytes + 4 * next)) >= replacements.size()))
      report(at, "a step that leads out of its table");
  }
}

CharacterMap::CharacterMap(std::string table, std::string_view name) : table_(std::move(table)) {
  check_character_map(table_, [&](size_t at, std::string_view what) {
    fail(Fault::data, name, ": its precompiled_charsmap is damaged: at byte ", at, " is ", what,
         ". Give the file as sentencepiece and Transformers made it.");
  });
  replacements_at_ = header_bytes + number_at(table_, 0);
}

size_t CharacterMap::longest_replacement() const {
  size_t longest = 0;
  for (size_t begin = replacements_at_; begin < table_.size();) {
    const size_t end = table_.find('\0', begin);  // the last of them ends so, too
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

uint32_t CharacterMap::unit(size_t index) const { return number_at(table_, header_bytes + 4 * index); }

const char* CharacterMap::replacement(std::string_view text) const {
  size_t index = offset_of(unit(0));
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte == 0) return nullptr;
    index ^= byte;
    const uint32_t reached = unit(index);
    if (label_of(reached) != byte) return nullptr;
    index ^= offset_of(reached);
    if (has_leaf(reached)) return table_.data() + replacements_at_ + value_of(unit(index));
  }
  return nullptr;
}

std::string CharacterMap::normalized(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = cluster_end(text, begin);
    const char* whole =
        end - begin <= max_cluster_bytes ? replacement(text.substr(begin, end - begin)) : nullptr;
    if (whole != nullptr) {
      out += whole;
      begin = end;
    }
    while (begin < end) {
      const size_t here = begin;
      next_code_point(text, begin);
      const std::string_view one = text.substr(here, begin - here);
      const char* replaced = replacement(one);
      if (replaced != nullptr)
        out += replaced;
      else
        out += one;
    }
  }
  return out;
}

}  // namespace heed
