// The table of a sentencepiece normaliser: clusters are replaced as a whole, and damage is refused.
#include "heed/data/tokenizers/character_map.h"

#include "heed/tests/data/scratch.h"

namespace heed {
namespace {

/// A table of 256 units, in which A becomes a, and U+0600 becomes B. The root's offset is 0, so that the unit
/// of a first byte has its number.
std::string small_table() {
  std::vector<uint32_t> units(256);
  const auto offset = [](uint32_t from, uint32_t to) { return (from ^ to) << 10; };
  units[0x41] = 0x41 | 0x100 | offset(0x41, 1);  // A, whose leaf is unit 1
  units[1] = 0x80000000 | 0;                     // the first replacement
  units[0xD8] = 0xD8 | offset(0xD8, 2);          // the first byte of U+0600
  units[2 ^ 0x80] = 0x80 | 0x100 | offset(2 ^ 0x80, 3);
  units[3] = 0x80000000 | 2;
  std::string out{0, 4, 0, 0};
  for (const uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(unit >> shift & 0xFF);
  return out + std::string("a\0B\0", 4);
}

}  // namespace

TEST_CASE("character map: what the table has is replaced, alone and as the begin of a short cluster") {
  const CharacterMap map(small_table(), "table");
  CHECK(map.normalized("xAy\u0600") == "xayB");
  CHECK(map.normalized("A\u0301A") == "aa");                              // 3 bytes: the mark goes, too
  CHECK(map.normalized("A\u0301\u0301\u0301") == "a\u0301\u0301\u0301");  // 7 bytes: one by one
  CHECK(map.normalized("\u0600A") == "B");                                // U+0600 begins a cluster
  CHECK(map.normalized("A\u0897") == "a");                                // a mark that came with Unicode 16
  CHECK(map.normalized("\u0600\u2065") == "B\u2065");
  CHECK(map.normalized(std::string_view("\0A", 2)) == std::string_view("\0a", 2));
  CHECK(map.normalized("").empty());
  CHECK(map.longest_replacement() == 1);
  CHECK(CharacterMap(small_table() + std::string("abc\0d\0", 6), "table").longest_replacement() == 3);
}

TEST_CASE("character map: a damaged table is refused by its byte") {
  const auto refused = [](const std::string& table, const std::string& reason) {
    CHECK_THAT(refusal(Fault::data, [&] { CharacterMap(table, "table"); }),
               containing("table: ") && containing(reason));
  };
  const std::string table = small_table();
  refused(table.substr(0, 4), "at byte 0 is a table that is cut short");
  refused(table.substr(0, 1028), "at byte 0 is the size of a table that does not fit");
  refused(table + "x", "at byte 1028 is a replacement that does not end");
  refused(table + std::string("\xFF\0", 2), "at byte 1032 is a replacement that is no text");
  std::string outside = table;
  outside[4 + 4 * 0x41 + 2] = static_cast<char>(0xFF);  // the offset of A
  refused(outside, "at byte 264 is a step that leads out of its table");
  std::string behind = table;
  behind[4 + 4] = 100;  // the leaf of A
  refused(behind, "at byte 264 is a step that leads out of its table");
}

}  // namespace heed
