// Errors name settings as they are written where they were set.
#include "heed/core/settings_in_errors.h"

#include "heed/core/device.h"
#include "heed/core/error.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("settings source: advice is for who reads it, and scopes nest") {
  const auto said = [] { return advice("--batch-size", "batch_size", "DataLoaderOptions::batch_size"); };
  CHECK(said() == "batch_size");
  {
    const SettingsSourceScope program(SettingsSource::command_line);
    CHECK(said() == "--batch-size");
    CHECK(advice("--memory", "cap_memory()") == "--memory");
    {
      const SettingsSourceScope fit(SettingsSource::fit);
      CHECK(said() == "DataLoaderOptions::batch_size");
      CHECK(advice("--memory", "cap_memory()") == "cap_memory()");
    }
    CHECK(said() == "--batch-size");
  }
  CHECK(said() == "batch_size");
}

TEST_CASE("settings source: where there is no GPU, the advice is of options or of C++") {
  if (why_no_cuda().empty()) return;
  const auto message = [] {
    try {
      device_named("cuda");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message(), containing("Use Device::cpu") && !containing("--device cpu"));
  const SettingsSourceScope program(SettingsSource::command_line);
  CHECK_THAT(message(), containing("Use --device cpu or auto."));
}
