// The facts of the data, now and in the manifest.
#include "heed/train/session/resume_data_check.h"

#include <algorithm>

#include "heed/core/io/json.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

bool is_hash(const std::string& name) { return name.starts_with("sha256 "); }

/// The hashes of the examples, in the order of the files.
Facts hashes_of(const Facts& metadata) {
  Facts out;
  for (const auto& fact : metadata) {
    if (is_hash(fact.first)) out.push_back(fact);
  }
  return out;
}

Facts texts_of(const Json& manifest) {
  Facts out;
  for (const auto& [name, value] : manifest.members()) {
    if (value.is_text()) out.emplace_back(name, value.text());
  }
  return out;
}

[[noreturn]] void refuse(const std::string& was, const std::string& now) {
  fail(Fault::data, "resume: the data changed: ", was, " and is now ", now,
       ". Give --data the file the run began with, or train anew.");
}

}  // namespace

void check_same_data(const Config& config, const RunFolder& folder) {
  const std::optional<Json> read = folder.read_manifest();
  if (!read) return;
  const Json& manifest = *read;
  const Facts metadata = config.task->metadata();
  for (const auto& [name, value] : metadata) {
    const Json* before = is_hash(name) ? nullptr : manifest.find(name);
    if (before != nullptr && before->is_text() && before->text() != value)
      refuse(text(name, " was ", before->text()), value);
  }
  // By their places, since the names of some are those of files: another file has another name.
  const Facts before = hashes_of(texts_of(manifest)), now = hashes_of(metadata);
  if (before.empty()) return;
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const auto words = [i](const Facts& list) {
      return i < list.size() ? list[i].first + " " + list[i].second : std::string("not there");
    };
    if (i >= before.size() || i >= now.size() || before[i].second != now[i].second)
      refuse(text("what was ", words(before)), words(now));
  }
}

}  // namespace heed
