// Keeps where settings come from: one value for the whole process, since errors come from many threads.
#include "heed/core/settings_source.h"

#include <atomic>

namespace heed {
namespace {

std::atomic<SettingsSource> present_source{SettingsSource::cpp};

}  // namespace

SettingsSource settings_source() { return present_source; }

SettingsSourceScope::SettingsSourceScope(SettingsSource source) : outer_(present_source.exchange(source)) {}
SettingsSourceScope::~SettingsSourceScope() { present_source = outer_; }

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
