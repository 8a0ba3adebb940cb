// Parses the parts of protocol buffers that occur in a sentencepiece model.
#include "heed/data/tokenizers/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "heed/core/error.h"
#include "heed/data/text/text.h"
#include "heed/data/tokenizers/character_map.h"

namespace heed::detail {
namespace {

// Wire types and field numbers: https://protobuf.dev/programming-guides/encoding and
// sentencepiece_model.proto.
// ModelProto { repeated SentencePiece pieces = 1 { string piece = 1; float score = 2; Type type = 3 };
//              TrainerSpec trainer_spec = 2 { ModelType model_type = 3 };
//              NormalizerSpec normalizer_spec = 3, denormalizer_spec = 5 { bytes precompiled_charsmap = 2 } }
enum Wire : uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
constexpr uint64_t pieces_field = 1, trainer_field = 2, normalizer_field = 3, denormalizer_field = 5;
constexpr uint64_t piece_text = 1, piece_score = 2, piece_kind = 3;
constexpr uint64_t trainer_model = 3;
constexpr uint64_t normalizer_table = 2;
constexpr uint64_t unigram = 1, bpe = 2;
constexpr uint64_t unknown_kind = 2, control_kind = 3, user_kind = 4, normal_kind = 1;
constexpr size_t max_piece_bytes = 1024;  // bytes
constexpr size_t max_pieces = 1'000'000;

/// One field of a message.
struct Field {
  uint64_t number = 0, wire = 0;
  uint64_t value = 0;             ///< value of a varint field
  std::string_view content = {};  ///< content of a bytes field
  size_t at = 0;                  ///< offset in the model
};

/// Checks a model message by message; its errors name the byte.
class ModelChecker {
 public:
  ModelChecker(std::string_view model, std::string_view name, int64_t offset, std::string_view remedy)
      : model_(model), name_(name), remedy_(remedy), offset_(offset) {}

  void check() {
    size_t num_model_types = 0;
    bool is_seen[8] = {};  // by the number of the field
    each_field(model_, [&](const Field& field) {
      const bool known = field.number == pieces_field || field.number == trainer_field ||
                         field.number == normalizer_field || field.number == denormalizer_field;
      if (!known || field.wire != bytes) fail_at(field.at, "a field that no model of ours has");
      if (field.number == pieces_field) return check_piece(field);
      if (is_seen[field.number]) fail_at(field.at, "a part of the model for the second time");
      is_seen[field.number] = true;
      if (field.number == trainer_field) {
        each_field(field.content, [&](const Field& option) {
          if (option.number != trainer_model) return;
          if (option.wire != varint || (option.value != unigram && option.value != bpe))
            fail_at(option.at, "a kind of model other than unigram and BPE");
          ++num_model_types;
        });
      } else {
        check_normalizer(field);
      }
    });
    if (num_model_types > 1) fail_at(0, "two kinds of model");
    if (pieces_.empty()) fail_at(0, "no pieces");
  }

 private:
  [[noreturn]] void fail_at(size_t at, std::string_view what) const {
    fail(Fault::data, name_, ": the sentencepiece model is damaged: at byte ",
         offset_ + static_cast<int64_t>(at), " is ", what, ". ", remedy_);
  }

  /// Reads a number of 7 bits a byte, the lowest first; moves `at` behind it.
  uint64_t read_varint(std::string_view message, size_t& at) const {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == message.size()) fail_at(offset_in_model(message, at), "a number that is cut short");
      const auto byte = static_cast<unsigned char>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail_at(offset_in_model(message, at), "a number of more than 64 bits");
  }

  /// The offset in the model of byte `at` of one of its parts.
  size_t offset_in_model(std::string_view part, size_t at) const {
    return static_cast<size_t>(part.data() - model_.data()) + at;
  }

  /// Little-endian 32-bit number at an offset.
  static uint32_t fixed32_at(std::string_view part, size_t offset) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(part[offset + i]);
    return value;
  }

  /// Calls visit(field) for each field of a message; fails for one that is not well-formed.
  template <class Visit>
  void each_field(std::string_view message, Visit visit) const {
    for (size_t at = 0; at < message.size();) {
      Field field{.at = offset_in_model(message, at)};
      const uint64_t tag = read_varint(message, at);
      field.number = tag >> 3;
      field.wire = tag & 7;
      const size_t left = message.size() - at;
      if (field.wire == varint) {
        field.value = read_varint(message, at);
      } else if (field.wire == fixed64 || field.wire == fixed32) {
        const size_t width = field.wire == fixed64 ? 8 : 4;
        if (left < width) fail_at(field.at, "a number that is cut short");
        field.content = message.substr(at, width);
        at += width;
      } else if (field.wire == bytes) {
        const uint64_t count = read_varint(message, at);
        if (count > message.size() - at) fail_at(field.at, "a part that is longer than what holds it");
        field.content = message.substr(at, count);
        at += count;
      } else {
        fail_at(field.at, "a field of an unknown type");
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
      } else if (field.number == piece_score && field.wire == fixed32) {
        const auto score = std::bit_cast<float>(fixed32_at(field.content, 0));
        if (!std::isfinite(score)) fail_at(field.at, "a score that is not finite");
      } else if (field.number == piece_kind && field.wire == varint) {
        kind = field.value;
      } else {
        fail_at(field.at, "a field that no piece has");
      }
    });
    const bool first = pieces_.empty();
    if (letters.empty() || letters.size() > max_piece_bytes ||
        invalid_utf8(letters) != std::string_view::npos || letters.find('\0') != std::string_view::npos) {
      fail_at(piece.at, "a piece that is empty, too long or no text");
    }
    if (kind != normal_kind && kind != unknown_kind && kind != control_kind && kind != user_kind)
      fail_at(piece.at, "a piece of a kind that is not in use");
    if ((kind == unknown_kind) != first) {
      fail_at(piece.at, first ? "a first piece other than the unknown one" : "a second unknown piece");
    }
    if (!pieces_.insert(letters).second) fail_at(piece.at, "a piece for the second time");
    if (pieces_.size() > max_pieces) fail_at(piece.at, "one piece too many");
  }

  void check_normalizer(const Field& part) const {
    each_field(part.content, [&](const Field& field) {
      if (field.number != normalizer_table) return;
      if (field.wire != bytes) fail_at(field.at, "a table that is none");
      if (!field.content.empty()) check_table(field.content);
    });
  }

  void check_table(std::string_view table) const {
    check_character_map(table,
                        [&](size_t at, std::string_view what) { fail_at(offset_in_model(table, at), what); });
  }

  std::string_view model_, name_, remedy_;
  int64_t offset_;
  std::unordered_set<std::string_view> pieces_;
};

}  // namespace

void check_sentencepiece_model(std::string_view model, std::string_view name, int64_t offset,
                               std::string_view remedy) {
  ModelChecker(model, name, offset, remedy).check();
}

}  // namespace heed::detail
