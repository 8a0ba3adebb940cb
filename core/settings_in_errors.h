// How errors name settings: as they are written where they were set.
#pragma once

#include <atomic>
#include <string>

#include "heed/core/scope.h"

namespace heed {

/// Where a user writes the settings of the running code.
enum class SettingsSource {
  cpp,           ///< objects of a C++ program: Config, DefaultDevice, cap_memory()
  fit,           ///< FitOptions and DataLoaderOptions of a C++ program
  command_line,  ///< options of run_program(), .toml files
};

/// The source of settings that errors name: `cpp` unless a SettingsSourceScope lives.
SettingsSource settings_source();

/// While it lives, errors of this process name settings as they are written in `source`.
class SettingsSourceScope {
 public:
  explicit SettingsSourceScope(SettingsSource source);  ///< nests; restores the previous source at its end

 private:
  ScopedValue<SettingsSource, std::atomic<SettingsSource>> source_;
};

/// The one of three wordings of an advice that fits settings_source(): an option of the command line, a field
/// of C++, or a field of fit()'s options.
std::string advice(const char* on_command_line, const char* in_cpp, const char* in_fit);
/// advice() with one wording for C++ programs with and without fit().
std::string advice(const char* on_command_line, const char* in_cpp);
/// What to do where a GPU was requested and is not available, as a sentence.
std::string device_advice();

}  // namespace heed
