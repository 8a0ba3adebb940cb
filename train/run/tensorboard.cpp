// Encodes and decodes protocol buffers by hand: an Event is four levels deep.
#include "heed/train/run/tensorboard.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "heed/core/io/hash.h"
#include "heed/core/io/no_follow_files.h"

namespace heed {
namespace {

constexpr std::string_view file_prefix = "events.out.tfevents.";
constexpr std::string_view file_version = "brain.Event:2";
// Wire types of protocol buffers.
constexpr uint64_t varint_type = 0;
constexpr uint64_t fixed64_type = 1;
constexpr uint64_t bytes_type = 2;
constexpr uint64_t fixed32_type = 5;

template <class Unsigned>
void append_fixed(std::string& out, Unsigned value) {
  for (size_t byte = 0; byte < sizeof value; ++byte) out += static_cast<char>(value >> (8 * byte) & 0xff);
}

template <class Unsigned>
Unsigned fixed(std::string_view bytes) {
  Unsigned value = 0;
  for (size_t byte = sizeof value; byte-- > 0;) {
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(bytes[byte]));
  }
  return value;
}

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

/// Masks a CRC as TFRecord does: the CRC of data that contain their own CRC would be weak.
uint32_t masked(uint32_t sum) { return std::rotr(sum, 15) + 0xa282ead8u; }

std::string framed(const std::string& message) {
  std::string out;
  append_fixed<uint64_t>(out, message.size());
  append_fixed<uint32_t>(out, masked(crc32c(out)));
  out += message;
  append_fixed<uint32_t>(out, masked(crc32c(message)));
  return out;
}

std::string event_start(double wall_time, int64_t step) {
  std::string message;
  append_key(message, 1, fixed64_type);
  append_fixed(message, std::bit_cast<uint64_t>(wall_time));
  append_key(message, 2, varint_type);
  append_varint(message, static_cast<uint64_t>(step));
  return message;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A field of a message: its number, and its value as integer or bytes.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

/// Iterates over the fields of one message; stops at the first malformed one.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) : rest_(message) {}

  bool next(Field& field) {
    uint64_t key = 0;
    if (!varint(key)) return false;
    field = {.number = key >> 3, .value = 0, .bytes = {}};
    switch (key & 7) {
      case varint_type:
        return varint(field.value);
      case fixed64_type:
        if (!take(8, field.bytes)) return false;
        field.value = fixed<uint64_t>(field.bytes);
        return true;
      case fixed32_type:
        if (!take(4, field.bytes)) return false;
        field.value = fixed<uint32_t>(field.bytes);
        return true;
      case bytes_type: {
        uint64_t length = 0;
        return varint(length) && take(length, field.bytes);
      }
      default:
        return false;
    }
  }

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool take(uint64_t count, std::string_view& bytes) {
    if (count > rest_.size()) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }

  std::string_view rest_;
};

std::pair<std::string, float> decode_value(std::string_view message) {
  std::pair<std::string, float> value{"", 0.0f};
  Field field;
  for (FieldReader reader(message); reader.next(field);) {
    if (field.number == 1) value.first = field.bytes;
    if (field.number == 2) value.second = std::bit_cast<float>(static_cast<uint32_t>(field.value));
  }
  return value;
}

ScalarEvent decode_event(std::string_view message) {
  ScalarEvent event;
  Field field;
  for (FieldReader reader(message); reader.next(field);) {
    if (field.number == 1) event.wall_time = std::bit_cast<double>(field.value);
    if (field.number == 2) event.step = static_cast<int64_t>(field.value);
    if (field.number != 5) continue;
    Field inner;
    for (FieldReader summary(field.bytes); summary.next(inner);) {
      if (inner.number == 1) event.scalars.push_back(decode_value(inner.bytes));
    }
  }
  return event;
}

/// The event files of a folder, for writing: refuses links among them.
std::vector<Path> event_files(const Path& folder) {
  io::check_directory(folder);
  std::vector<Path> found;
  for (const Path& name : io::list(folder)) {
    if (!name.string().starts_with(file_prefix)) continue;
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
    append_bytes(value, 1, tag);
    append_key(value, 2, fixed32_type);
    append_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    append_bytes(summary, 1, value);
  }
  std::string message = event_start(wall_time, step);
  append_bytes(message, 5, summary);
  return framed(message);
}

std::vector<ScalarEvent> decode_events(std::string_view bytes) {
  constexpr size_t head = 12;  // length and its checksum
  constexpr size_t tail = 4;
  std::vector<ScalarEvent> events;
  size_t at = 0;
  while (bytes.size() - at >= head + tail) {
    const std::string_view rest = bytes.substr(at);
    const auto length = fixed<uint64_t>(rest.substr(0, 8));
    if (fixed<uint32_t>(rest.substr(8, 4)) != masked(crc32c(rest.substr(0, 8)))) break;
    if (length > rest.size() - head - tail) break;
    const std::string_view message = rest.substr(head, length);
    if (fixed<uint32_t>(rest.substr(head + length, 4)) != masked(crc32c(message))) break;
    at += head + length + tail;
    events.push_back(decode_event(message));
    events.back().end = static_cast<int64_t>(at);
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
  const double start = now();
  file_.emplace(folder_ / text(file_prefix, static_cast<int64_t>(start), ".heed"));
  std::string message = event_start(start, 0);
  append_bytes(message, 3, file_version);
  file_->raw(framed(message));
}

void TensorBoard::write(int64_t step, std::span<const Scalar> scalars) {
  if (!file_) open();
  file_->raw(encode_scalar_event(now(), step, scalars));
}

void TensorBoard::sync() {
  if (file_) file_->sync();
}

void TensorBoard::truncate_to(int64_t step, int64_t validated) {
  file_.reset();
  for (const Path& path : event_files(folder_)) {
    const std::string bytes = io::read(path);
    std::string kept;
    int64_t begin = 0;
    for (const ScalarEvent& event : decode_events(bytes)) {
      const auto is_score = [](const auto& one) { return one.first.starts_with(score_prefix); };
      const bool scores = std::any_of(event.scalars.begin(), event.scalars.end(), is_score);
      if (event.step <= (scores ? std::min(step, validated) : step)) {
        kept.append(bytes, static_cast<size_t>(begin), static_cast<size_t>(event.end - begin));
      }
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
