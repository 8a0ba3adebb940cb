// Fuzz target: TensorBoard event files, raw and as records with valid checksums.
#include "heed/core/io/hash.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/run/tensorboard.h"

using namespace heed;

namespace {

std::string little(uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

std::string framed(std::string_view message) {
  const std::string length = little(message.size(), 8);
  return length + little(masked(length), 4) + std::string(message) + little(masked(message), 4);
}

void check(std::string_view bytes, int64_t records) {
  std::vector<ScalarEvent> events;
  law::demand(law::obeys("events", bytes, [&] { events = decode_events(bytes); }, {.per_byte = 64}),
              "any event file can be read");
  int64_t end = 0;
  for (const ScalarEvent& event : events) {
    law::demand(event.end > end && event.end <= static_cast<int64_t>(bytes.size()),
                "records follow each other");
    end = event.end;
  }
  law::demand(static_cast<int64_t>(events.size()) >= records, "a whole record is read");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  check(input, 0);
  const size_t cut = input.find('\xFF');
  std::string records = framed(input.substr(0, cut));
  if (cut != std::string_view::npos) records += framed(input.substr(cut + 1));
  check(records, 1);
  return 0;
}
