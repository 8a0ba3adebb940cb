// Reads the settings of a model that another program trained, out of JSON.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/json.h"

namespace heed {

/// Members of a JSON object, such as a config.json; errors are Fault::data that names `name` and the member.
class ModelSettings {
 public:
  /// Both arguments must outlive it. Fails unless `json` is an object.
  ModelSettings(const Json& json, const std::string& name);
  /// A count of 1 to 2^24; `otherwise` where the member is missing and that is above 0.
  int64_t count(const char* key, int64_t otherwise = 0) const;
  /// A number from 0 to less than 1; `otherwise` where the member is missing.
  double fraction(const char* key, double otherwise) const;
  /// A number above 0; `otherwise` where the member is missing.
  double positive(const char* key, double otherwise) const;
  /// An index of 0 to less than `end`.
  int64_t index(const char* key, int64_t end) const;
  /// Any finite number; `otherwise` where the member is missing.
  double number(const char* key, double otherwise) const;
  /// True or false; `otherwise` where the member is missing.
  bool flag(const char* key, bool otherwise) const;
  /// One of the words.
  std::string word(const char* key, const std::vector<std::string>& words) const;
  /// Fails unless the member is absent or has this value: "only VALUE can be read: WHY".
  void demand(const char* key, const Json& value, const char* why) const;

 private:
  /// The member; null where it is missing or JSON's null.
  const Json* find(const char* key) const;
  [[noreturn]] void refuse(const char* key, const Json* found, const std::string& legal) const;

  const Json& json_;
  const std::string& name_;
};

}  // namespace heed
