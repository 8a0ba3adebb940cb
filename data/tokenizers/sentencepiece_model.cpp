// Parses the parts of protocol buffers that occur in a sentencepiece model.
#include "heed/data/tokenizers/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "heed/core/error.h"
#include "heed/data/text/text.h"

namespace heed::detail {
namespace {

// Wire types and field numbers: https://protobuf.dev/programming-guides/encoding and
// sentencepiece_model.proto.
enum Wire : uint64_t { varint = 0, wide = 1, bytes = 2, narrow = 5 };
constexpr uint64_t pieces_field = 1, trainer_field = 2, normalizer_field = 3, denormalizer_field = 5;
constexpr uint64_t piece_text = 1, piece_score = 2, piece_kind = 3;
constexpr uint64_t trainer_model = 3;
constexpr uint64_t normalizer_table = 2;
constexpr uint64_t unigram = 1, bpe = 2;
constexpr uint64_t unknown_kind = 2, control_kind = 3, user_kind = 4, normal_kind = 1;
constexpr size_t longest_piece = 1024;  // bytes
constexpr size_t max_pieces = 1'000'000;

/// One field of a message.
struct Field {
  uint64_t number = 0, wire = 0;
  uint64_t value = 0;             ///< value of a varint field
  std::string_view content = {};  ///< content of a bytes field
  size_t at = 0;                  ///< offset in the model
};

class Checker {
 public:
  Checker(std::string_view model, std::string_view name, int64_t offset)
      : model_(model), name_(name), offset_(offset) {}

  void check() {
    size_t kinds_of_model = 0;
    bool seen[8] = {};
    each_field(model_, [&](const Field& field) {
      const bool known = field.number == pieces_field || field.number == trainer_field ||
                         field.number == normalizer_field || field.number == denormalizer_field;
      if (!known || field.wire != bytes) refuse(field.at, "a field that no model of ours has");
      if (field.number == pieces_field) return check_piece(field);
      if (seen[field.number]) refuse(field.at, "a part of the model for the second time");
      seen[field.number] = true;
      if (field.number == trainer_field) {
        each_field(field.content, [&](const Field& option) {
          if (option.number != trainer_model) return;
          if (option.wire != varint || (option.value != unigram && option.value != bpe))
            refuse(option.at, "a kind of model other than unigram and BPE");
          ++kinds_of_model;
        });
      } else {
        check_normalizer(field);
      }
    });
    if (kinds_of_model > 1) refuse(0, "two kinds of model");
    if (pieces_.empty()) refuse(0, "no pieces");
  }

 private:
  [[noreturn]] void refuse(size_t at, std::string_view what) const {
    fail(Fault::data, name_, ": the sentencepiece model is damaged: at byte ",
         offset_ + static_cast<int64_t>(at), " is ", what,
         ". Take the one of another checkpoint of the run.");
  }

  uint64_t read_varint(std::string_view message, size_t& at) const {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == message.size()) refuse(place(message, at), "a number that is cut short");
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    refuse(place(message, at), "a number of more than 64 bits");
  }

  size_t place(std::string_view part, size_t at) const {
    return static_cast<size_t>(part.data() - model_.data()) + at;
  }

  template <class Visit>
  void each_field(std::string_view message, Visit visit) const {
    for (size_t at = 0; at < message.size();) {
      Field field{.at = place(message, at)};
      const uint64_t tag = read_varint(message, at);
      field.number = tag >> 3;
      field.wire = tag & 7;
      const size_t left = message.size() - at;
      if (field.wire == varint) {
        field.value = read_varint(message, at);
      } else if (field.wire == wide || field.wire == narrow) {
        const size_t width = field.wire == wide ? 8 : 4;
        if (left < width) refuse(field.at, "a number that is cut short");
        field.content = message.substr(at, width);
        at += width;
      } else if (field.wire == bytes) {
        const uint64_t count = read_varint(message, at);
        if (count > message.size() - at) refuse(field.at, "a part that is longer than what holds it");
        field.content = message.substr(at, count);
        at += count;
      } else {
        refuse(field.at, "a field of an unknown type");
      }
      visit(field);
    }
  }

  void check_piece(const Field& piece) {
    std::string_view letters;
    uint64_t kind = normal_kind;
    each_field(piece.content, [&](const Field& field) {
      if (field.number == piece_text && field.wire == bytes) {
        letters = field.content;
      } else if (field.number == piece_score && field.wire == narrow) {
        uint32_t bits = 0;
        for (size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(field.content[i]);
        if (!std::isfinite(std::bit_cast<float>(bits))) refuse(field.at, "a score that is not finite");
      } else if (field.number == piece_kind && field.wire == varint) {
        kind = field.value;
      } else {
        refuse(field.at, "a field that no piece has");
      }
    });
    const bool first = pieces_.empty();
    if (letters.empty() || letters.size() > longest_piece ||
        invalid_utf8(letters) != std::string_view::npos || letters.find('\0') != std::string_view::npos) {
      refuse(piece.at, "a piece that is empty, too long or no text");
    }
    if (kind != normal_kind && kind != unknown_kind && kind != control_kind && kind != user_kind)
      refuse(piece.at, "a piece of a kind that is not in use");
    if ((kind == unknown_kind) != first) {
      refuse(piece.at, first ? "a first piece other than the unknown one" : "a second unknown piece");
    }
    if (!pieces_.insert(letters).second) refuse(piece.at, "a piece for the second time");
    if (pieces_.size() > max_pieces) refuse(piece.at, "one piece too many");
  }

  void check_normalizer(const Field& part) const {
    each_field(part.content, [&](const Field& field) {
      if (field.number != normalizer_table) return;
      if (field.wire != bytes) refuse(field.at, "a table that is none");
      if (!field.content.empty()) check_table(field.content);
    });
  }

  /// The table of replacements: the size of a double array of 32-bit units, the units, then the replacements,
  /// each terminated by NUL. A unit (of darts-clone; Yata et al. 2007) leads to the units whose index is its
  /// own XOR its offset XOR one byte; its leaf, if any, is the unit at the offset and holds a position in the
  /// replacements.
  void check_table(std::string_view table) const {
    const auto unit = [&](size_t at) {
      uint32_t value = 0;
      for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(table[at + i]);
      return value;
    };
    if (table.size() <= 4) refuse(place(table, 0), "a table that is cut short");
    const size_t size = unit(0);
    if (size == 0 || size % 1024 != 0 || size >= table.size() - 4)
      refuse(place(table, 0), "the size of a table that does not fit");
    const std::string_view replacements = table.substr(4 + size);
    if (replacements.back() != '\0') refuse(place(replacements, 0), "a replacement that does not end");
    if (invalid_utf8(replacements) != std::string_view::npos) {
      refuse(place(replacements, invalid_utf8(replacements)), "a replacement that is no text");
    }
    const size_t units = size / 4;
    for (size_t i = 0; i < units; ++i) {
      const uint32_t value = unit(4 + 4 * i);
      if (value >> 31 != 0 && i > 0) continue;  // a leaf: checked at the unit that leads to it
      const size_t next = i ^ size_t { value >> 10 } << ((value & 0x200) >> 6);
      // The 256 units that one step can reach are in one block.
      const bool inside = (next | 0xFF) < units;
      const bool has_leaf = (value & 0x100) != 0;
      if (!inside || (has_leaf && (unit(4 + 4 * next) & 0x7FFFFFFF) >= replacements.size()))
        refuse(place(table, 4 + 4 * i), "a step that leads out of its table");
    }
  }

  std::string_view model_, name_;
  int64_t offset_;
  std::unordered_set<std::string_view> pieces_;
};

}  // namespace

void check_sentencepiece_model(std::string_view model, std::string_view name, int64_t offset) {
  Checker(model, name, offset).check();
}

}  // namespace heed::detail
