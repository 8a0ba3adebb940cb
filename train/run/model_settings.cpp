// Checks the settings of a model that another program trained.
#include "heed/train/run/model_settings.h"

#include <cmath>

namespace heed {

ModelSettings::ModelSettings(const Json& json, const std::string& name) : json_(json), name_(name) {
  if (!json.is_object()) fail(Fault::data, name, " is no JSON object. A model has its settings there.");
}

int64_t ModelSettings::count(const char* key, int64_t otherwise) const {
  constexpr int64_t max_extent = 1 << 24;  // limit of a tensor of the model
  const Json* found = find(key);
  if (found == nullptr && otherwise > 0) return otherwise;
  if (found == nullptr || !found->is_integer() || found->integer() < 1 || found->integer() > max_extent)
    refuse(key, found, text("a whole number from 1 to ", max_extent));
  return found->integer();
}

double ModelSettings::fraction(const char* key, double otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_number() || !(found->real() >= 0 && found->real() < 1))
    refuse(key, found, "a number from 0 to less than 1");
  return found->real();
}

double ModelSettings::positive(const char* key, double otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_number() || !(found->real() > 0) || !std::isfinite(found->real()))
    refuse(key, found, "a number above 0");
  return found->real();
}

int64_t ModelSettings::index(const char* key, int64_t end) const {
  const Json* found = find(key);
  if (found == nullptr || !found->is_integer() || found->integer() < 0 || found->integer() >= end)
    refuse(key, found, text("a whole number from 0 to ", end - 1));
  return found->integer();
}

double ModelSettings::number(const char* key, double otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_number() || !std::isfinite(found->real())) refuse(key, found, "a finite number");
  return found->real();
}

bool ModelSettings::flag(const char* key, bool otherwise) const {
  const Json* found = find(key);
  if (found == nullptr) return otherwise;
  if (found->dump() != "true" && found->dump() != "false") refuse(key, found, "true or false");
  return found->boolean();
}

std::string ModelSettings::word(const char* key, const std::vector<std::string>& words) const {
  const Json* found = find(key);
  std::string legal;
  for (const std::string& word : words) {
    if (found != nullptr && found->is_text() && found->text() == word) return word;
    legal += (legal.empty() ? "" : ", ") + word;
  }
  refuse(key, found, "one of " + legal);
}

void ModelSettings::demand(const char* key, const Json& value, const char* why) const {
  const Json* found = find(key);
  if (found != nullptr && found->dump() != value.dump())
    fail(Fault::data, name_, ": ", key, " is ", shown(found->dump(), 80), ", and only ", value.dump(),
         " can be read: ", why, ".");
}

const Json* ModelSettings::find(const char* key) const {
  const Json* found = json_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void ModelSettings::refuse(const char* key, const Json* found, const std::string& legal) const {
  fail(Fault::data, name_, ": ", key,
       found == nullptr ? std::string(" is missing") : text(" is ", shown(found->dump(), 80)),
       ". It must be ", legal, ".");
}

}  // namespace heed
