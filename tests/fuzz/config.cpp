// Fuzz target: configurations in TOML.
#include "heed/train/config/config.h"

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const law::Bounds bounds{.per_byte = 1000, .usage = true};
  const Path path = law::planted(input, ".toml");
  law::obeys(
      path.string(), input, [&] { make_config(path.string()); }, bounds);
  Config config;
  const auto read = [&] { config = read_config(std::string(input), "run/config.toml"); };
  if (!law::obeys("run/config.toml", input, read, bounds)) return 0;
  const std::string written = to_toml(config);
  Config again = read_config(written, "again");
  law::demand(to_toml(again) == written, "writing and reading keeps every setting");
  try {
    config.check();
  } catch (const Error& error) {
    law::demand(error.fault() == Fault::usage, text("settings are refused by a usage error: ", error.what()));
  }
  return 0;
}
