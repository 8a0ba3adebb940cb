// Writes the opcodes of a pickle.
#include <bit>

#include "heed/core/io/pickle.h"

namespace heed {
namespace {

/// The lowest `size` bytes of a number, little-endian.
std::string little_endian(uint64_t value, int size) {
  std::string out;
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

}  // namespace

PickleWriter& PickleWriter::integer(int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX)
    bytes_ += "J" + little_endian(static_cast<uint64_t>(value), 4);
  else
    bytes_ += "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
  return *this;
}

PickleWriter& PickleWriter::real(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  bytes_ += 'G';
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i) & 0xFF);
  return *this;
}

PickleWriter& PickleWriter::boolean(bool value) {
  bytes_ += value ? '\x88' : '\x89';
  return *this;
}

PickleWriter& PickleWriter::text(std::string_view value) {
  bytes_ += "X" + little_endian(value.size(), 4);
  bytes_ += value;
  return *this;
}

PickleWriter& PickleWriter::global(std::string_view module, std::string_view name) {
  bytes_ += 'c';
  bytes_ += module;
  bytes_ += '\n';
  bytes_ += name;
  bytes_ += '\n';
  return *this;
}

PickleWriter& PickleWriter::dict() {
  bytes_ += '}';
  return *this;
}

PickleWriter& PickleWriter::set() {
  bytes_ += 's';
  return *this;
}

PickleWriter& PickleWriter::begin_tuple() {
  bytes_ += '(';
  return *this;
}

PickleWriter& PickleWriter::end_tuple() {
  bytes_ += 't';
  return *this;
}

PickleWriter& PickleWriter::call() {
  bytes_ += 'R';
  return *this;
}

PickleWriter& PickleWriter::persistent() {
  bytes_ += 'Q';
  return *this;
}

std::string PickleWriter::finish() const { return bytes_ + "."; }

}  // namespace heed
