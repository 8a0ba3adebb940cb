// Keeps where settings come from: one value for the whole process, since errors come from many threads.
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

std::atomic<SettingsSource> current_source{SettingsSource::cpp};

}  // namespace

SettingsSource settings_source() { return current_source; }

SettingsSourceScope::SettingsSourceScope(SettingsSource source) : source_(current_source, source) {}

std::string advice(const char* on_command_line, const char* in_cpp) {
  return advice(on_command_line, in_cpp, in_cpp);
}

std::string advice(const char* on_command_line, const char* in_cpp, const char* in_fit) {
  switch (settings_source()) {
    case SettingsSource::command_line:
      return on_command_line;
    case SettingsSource::fit:
      return in_fit;
    case SettingsSource::cpp:
      break;
  }
  return in_cpp;
}

std::string device_advice() {
  return advice("Use --device cpu or auto.", "Use Device::cpu, or device_named(\"auto\").");
}

}  // namespace heed
