// How errors name settings: as they are written where they were set.
#pragma once

#include <string>

namespace heed {

/// Where the settings of what runs come from.
enum class SettingsSource {
  cpp,           ///< objects of a C++ program: Config, DefaultDevice, cap_memory()
  fit,           ///< FitOptions and DataLoaderOptions of a C++ program
  command_line,  ///< options of run_program(), .toml files
};

/// Where they come from now: `cpp` unless a SettingsSourceScope lives.
SettingsSource settings_source();

/// Until it ends, errors of this process name settings as `source` has them.
class SettingsSourceScope {
 public:
  explicit SettingsSourceScope(SettingsSource source);  ///< nests: the one before holds again at its end
  ~SettingsSourceScope();
  SettingsSourceScope(const SettingsSourceScope&) = delete;
  SettingsSourceScope& operator=(const SettingsSourceScope&) = delete;

 private:
  SettingsSource outer_;
};

/// What an error advises: the first where there is a command line, the second in a program without one.
std::string advice(const char* on_command_line, const char* in_cpp);
/// The same, with words of its own for fit().
std::string advice(const char* on_command_line, const char* in_cpp, const char* in_fit);
/// What to do where a GPU was asked for and cannot be had, as a sentence.
std::string device_advice();

}  // namespace heed
