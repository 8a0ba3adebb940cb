// Encodes and decodes by hand the part of TensorFlow's protocol buffers that scalars need (event.proto and
// summary.proto; numbers are those of fields):
//   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//   Summary { repeated Value value = 1; }
//   Value   { string tag = 1; float simple_value = 2; }
#include "heed/train/run/tensorboard.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"

namespace heed {
namespace {

constexpr std::string_view event_file_prefix = "events.out.tfevents.";
constexpr std::string_view file_version = "brain.Event:2";
constexpr uint64_t event_wall_time = 1, event_step = 2, event_file_version = 3, event_summary = 5;
constexpr uint64_t summary_value = 1, value_tag = 1, value_simple_value = 2;
// Wire types of protocol buffers.
constexpr uint64_t varint_type = 0, fixed64_type = 1, bytes_type = 2, fixed32_type = 5;
// Sizes of a TFRecord's parts around its message: length and checksum before it, a checksum behind it.
constexpr size_t length_bytes = sizeof(uint64_t), checksum_bytes = sizeof(uint32_t);
constexpr size_t header_bytes = length_bytes + checksum_bytes;

/// Appends a number of fixed size, the lowest byte first.
template <class Unsigned>
void append_little_endian(std::string& out, Unsigned value) {
  for (size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>(value >> (8 * byte) & 0xff);
}

/// Reads what append_little_endian() wrote at the beginning of `bytes`.
template <class Unsigned>
Unsigned read_little_endian(std::string_view bytes) {
  Unsigned value = 0;
  for (size_t byte = sizeof value; byte-- > 0;) {
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(bytes[byte]));
  }
  return value;
}

/// Appends a varint: seven bits a byte, the lowest first; the top bit of a byte says that another follows.
void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, uint64_t field, uint64_t type) { append_varint(out, field << 3 | type); }

void append_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  append_key(out, field, bytes_type);
  append_varint(out, bytes.size());
  out += bytes;
}

/// The masked CRC-32C of TFRecord: an unmasked CRC of data that contain their own CRC would be weak.
uint32_t checksum(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

/// The TFRecord of a message: length, checksum of the length, message, checksum of the message.
std::string tf_record(const std::string& message) {
  std::string out;
  append_little_endian<uint64_t>(out, message.size());
  append_little_endian<uint32_t>(out, checksum(out));
  out += message;
  append_little_endian<uint32_t>(out, checksum(message));
  return out;
}

/// An Event with its time and step alone, to which other fields may be appended.
std::string encode_event(double wall_time, int64_t step) {
  std::string message;
  append_key(message, event_wall_time, fixed64_type);
  append_little_endian(message, std::bit_cast<uint64_t>(wall_time));
  append_key(message, event_step, varint_type);
  append_varint(message, static_cast<uint64_t>(step));
  return message;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A field of a message.
struct Field {
  uint64_t number = 0;
  uint64_t bits = 0;       // value of a number: an integer, or the bits of a float or double
  std::string_view bytes;  // value of a string or an inner message
};

/// Reads the fields of one message, one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : rest_(message) {}

  /// Reads the next field; false at the end of the message and at a malformed field.
  bool next(Field& field) {
    uint64_t key = 0;
    if (!read_varint(key)) return false;
    field = {.number = key >> 3, .bits = 0, .bytes = {}};
    switch (key & 7) {
      case varint_type:
        return read_varint(field.bits);
      case fixed64_type:
        if (!read_bytes(sizeof(uint64_t), field.bytes)) return false;
        field.bits = read_little_endian<uint64_t>(field.bytes);
        return true;
      case fixed32_type:
        if (!read_bytes(sizeof(uint32_t), field.bytes)) return false;
        field.bits = read_little_endian<uint32_t>(field.bytes);
        return true;
      case bytes_type: {
        uint64_t length = 0;
        return read_varint(length) && read_bytes(length, field.bytes);
      }
      default:
        return false;
    }
  }

 private:
  bool read_varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool read_bytes(uint64_t count, std::string_view& bytes) {
    if (count > rest_.size()) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  std::string_view rest_;
};

TaggedScalar decode_value(std::string_view message) {
  TaggedScalar scalar;
  Field field;
  for (FieldReader reader(message); reader.next(field);) {
    if (field.number == value_tag) scalar.tag = field.bytes;
    if (field.number == value_simple_value)
      scalar.number = std::bit_cast<float>(static_cast<uint32_t>(field.bits));
  }
  return scalar;
}

ScalarEvent decode_event(std::string_view message) {
  ScalarEvent event;
  Field field, value;
  for (FieldReader reader(message); reader.next(field);) {
    if (field.number == event_wall_time) event.wall_time = std::bit_cast<double>(field.bits);
    if (field.number == event_step) event.step = static_cast<int64_t>(field.bits);
    if (field.number != event_summary) continue;
    for (FieldReader summary(field.bytes); summary.next(value);) {
      if (value.number == summary_value) event.scalars.push_back(decode_value(value.bytes));
    }
  }
  return event;
}

/// The event files of a folder, to be written. Fails if one is a link.
std::vector<Path> event_files(const Path& folder) {
  io::check_directory(folder);
  std::vector<Path> found;
  for (const Path& name : io::list(folder)) {
    if (!name.string().starts_with(event_file_prefix)) continue;
    io::check_regular(folder / name);
    found.push_back(folder / name);
  }
  return found;
}

}  // namespace

std::string encode_scalar_event(double wall_time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    append_bytes(value, value_tag, tag);
    append_key(value, value_simple_value, fixed32_type);
    append_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    append_bytes(summary, summary_value, value);
  }
  std::string message = encode_event(wall_time, step);
  append_bytes(message, event_summary, summary);
  return tf_record(message);
}

std::vector<ScalarEvent> decode_events(std::string_view bytes) {
  std::vector<ScalarEvent> events;
  size_t offset = 0;
  while (bytes.size() - offset >= header_bytes + checksum_bytes) {
    const std::string_view rest = bytes.substr(offset);
    const std::string_view length_field = rest.substr(0, length_bytes);
    if (read_little_endian<uint32_t>(rest.substr(length_bytes)) != checksum(length_field)) break;
    const auto length = read_little_endian<uint64_t>(length_field);
    if (length > rest.size() - header_bytes - checksum_bytes) break;
    const std::string_view message = rest.substr(header_bytes, length);
    if (read_little_endian<uint32_t>(rest.substr(header_bytes + length)) != checksum(message)) break;
    offset += header_bytes + length + checksum_bytes;
    events.push_back(decode_event(message));
    events.back().end = static_cast<int64_t>(offset);
  }
  return events;
}

TensorBoard::TensorBoard(const Path& folder) : folder_(folder) {}

void TensorBoard::open() {
  io::make_directories(folder_.parent_path());
  io::make_directory(folder_);
  const std::vector<Path> found = event_files(folder_);
  if (!found.empty()) {
    file_.emplace(found.back());
    return;
  }
  const double time = seconds_since_1970();
  file_.emplace(folder_ / text(event_file_prefix, static_cast<int64_t>(time), ".heed"));
  std::string message = encode_event(time, 0);
  append_bytes(message, event_file_version, file_version);
  file_->raw(tf_record(message));
}

void TensorBoard::write(int64_t step, std::span<const Scalar> scalars) {
  if (!file_) open();
  file_->raw(encode_scalar_event(seconds_since_1970(), step, scalars));
}

void TensorBoard::sync() {
  if (file_) file_->sync();
}

void TensorBoard::truncate_to(int64_t step, int64_t validated_step) {
  file_.reset();
  for (const Path& path : event_files(folder_)) {
    const std::string bytes = io::read(path);
    std::string kept;
    int64_t begin = 0;
    for (const ScalarEvent& event : decode_events(bytes)) {
      const bool has_scores =
          std::any_of(event.scalars.begin(), event.scalars.end(),
                      [](const TaggedScalar& scalar) { return scalar.tag.starts_with(score_prefix); });
      if (event.step <= (has_scores ? std::min(step, validated_step) : step))
        kept.append(bytes, static_cast<size_t>(begin), static_cast<size_t>(event.end - begin));
      begin = event.end;
    }
    if (kept.empty()) {
      io::remove_all(path);
    } else if (kept.size() != bytes.size()) {
      io::write_own(path, kept);
    }
  }
}

}  // namespace heed
