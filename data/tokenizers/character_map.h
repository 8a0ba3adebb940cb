// The table by which sentencepiece normalises texts: characters and what replaces them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace heed {

/// Called with the offset of a byte of a table and with what is wrong there. It must not return.
using ReportDamage = std::function<void(size_t at, std::string_view what)>;

/// Calls `report` unless a precompiled_charsmap of sentencepiece is whole: the size of a double array of
/// 32-bit units in bytes, the units, then the replacements in UTF-8, each terminated by NUL. A unit (of
/// darts-clone; Yata et al. 2007) leads to the units whose index is its own XOR its offset XOR one byte; its
/// leaf, if any, is the unit at the offset and holds a position in the replacements. No step may lead out of
/// the table.
void check_character_map(std::string_view table, const ReportDamage& report);

/// Replaces the characters of texts as the normalizer Precompiled of Hugging Face's tokenizers 0.23 does.
class CharacterMap {
 public:
  /// `table`: a precompiled_charsmap. Fault::data that begins with `name` where it is damaged.
  CharacterMap(std::string table, std::string_view name);

  /// The text, which is UTF-8, with its characters replaced. A cluster of code points that is one letter to
  /// its reader (a grapheme cluster, UAX #29) is replaced as a whole where it is shorter than 6 bytes and the
  /// table has a text that it begins with; else each code point is looked up alone.
  std::string normalized(std::string_view text) const;
  /// Bytes of the longest text that replaces another.
  size_t longest_replacement() const;

 private:
  /// The unit of an index.
  uint32_t unit(size_t index) const;
  /// What replaces the shortest text of the table that `text` begins with; null where there is none.
  const char* replacement(std::string_view text) const;

  std::string table_;
  size_t replacements_at_ = 0;  // offset of the replacements in the table
};

}  // namespace heed
