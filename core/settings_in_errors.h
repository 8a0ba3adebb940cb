// How errors name settings: as they are written where they were set.
#pragma once

#include <atomic>
#include <string>

#include "heed/core/scope.h"

namespace heed {

/// Where the settings of what runs come from.
enum class SettingsSource {
  cpp,           ///< objects of a C++ program: Config, DefaultDevice, cap_memory()
  fit,           ///< FitOptions and DataLoaderOptions of a C++ program
  command_line,  ///< options of run_program(), .toml files
};

/// Where the settings come from now: `cpp` unless a SettingsSourceScope lives.
SettingsSource settings_source();

/// While it lives, errors of this process name settings as they are written in `source`.
class SettingsSourceScope {
 public:
  explicit SettingsSourceScope(SettingsSource source);  ///< nests; restores the previous source at its end

 private:
  ScopedValue<SettingsSource, std::atomic<SettingsSource>> source_;
};

/// The advice of an error, as it is given on the command line, in a C++ program, and in one that calls fit().
std::string advice(const char* on_command_line, const char* in_cpp, const char* in_fit);
/// advice() that is the same in a C++ program with and without fit().
std::string advice(const char* on_command_line, const char* in_cpp);
/// What to do where a GPU was requested and is not available, as a sentence.
std::string device_advice();

}  // namespace heed
