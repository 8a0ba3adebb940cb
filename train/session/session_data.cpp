// Reads the data of a session, in one process or several, and compares them with those of the run.
#include "heed/train/session/session_data.h"

#include <algorithm>

#include "heed/core/io/json.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Metadata of a task's data: names and values.
using Metadata = std::vector<std::pair<std::string, std::string>>;

bool is_hash(const std::string& name) { return name.starts_with("sha256 "); }

/// The hashes in the metadata, in the order of the files.
Metadata hashes_of(const Metadata& metadata) {
  Metadata out;
  for (const auto& entry : metadata) {
    if (is_hash(entry.first)) out.push_back(entry);
  }
  return out;
}

/// The members of a manifest that are texts; among them is the metadata of the task.
Metadata texts_of(const Json& manifest) {
  Metadata out;
  for (const auto& [name, value] : manifest.members()) {
    if (value.is_text()) out.emplace_back(name, value.text());
  }
  return out;
}

[[noreturn]] void refuse_change(const std::string& was, const std::string& present) {
  fail(Fault::data, "resume: the data changed: ", was, " and is now ", present,
       ". Give --data the file the run began with, or train anew.");
}

}  // namespace

void load_data(Config& config, const Checkpoint* checkpoint, Progress& progress, ProcessGroup& group) {
  std::vector<NamedBytes> artifacts;
  if (checkpoint != nullptr) artifacts = tokenizer_files(*checkpoint);
  const auto load = [&] {
    const ProgressScope shown(progress, "data");
    config.task->load(config, artifacts, [&](const std::string& line) {
      const size_t gap = line.find("  ");
      progress.say(line.substr(0, gap), line.substr(std::min(line.find_first_not_of(' ', gap), line.size())));
    });
  };
  group.together_on_main(load);
  if (group.size() == 1) return;
  const bool is_main = group.is_main();
  if (is_main) artifacts = config.task->artifacts();
  spread_files(group, artifacts);
  group.together([&] {
    if (!is_main) load();
  });
  std::string metadata;
  for (const auto& [name, value] : config.task->metadata()) metadata += text("  ", name, ": ", value, "\n");
  const std::string first = group.broadcast(metadata);
  group.together([&] {
    if (metadata != first) {
      fail(Fault::data, "train: the data are not the same everywhere. Process 1 read\n", first,
           describe_rank(group), "\n", metadata, "Give every machine the same --data.");
    }
  });
}

void check_same_data(const Config& config, const RunFolder& folder) {
  const std::optional<Json> manifest = folder.read_manifest();
  if (!manifest) return;
  const Metadata metadata = config.task->metadata();
  for (const auto& [name, value] : metadata) {
    const Json* recorded = is_hash(name) ? nullptr : manifest->find(name);
    if (recorded != nullptr && recorded->is_text() && recorded->text() != value)
      refuse_change(text(name, " was ", recorded->text()), value);
  }
  // Hashes are compared by their order, since some are named after files, which may be renamed.
  const Metadata recorded = hashes_of(texts_of(*manifest)), present = hashes_of(metadata);
  if (recorded.empty()) return;
  for (size_t i = 0; i < std::max(recorded.size(), present.size()); ++i) {
    const auto entry_text = [i](const Metadata& hashes) {
      return i < hashes.size() ? hashes[i].first + " " + hashes[i].second : std::string("not there");
    };
    if (i >= recorded.size() || i >= present.size() || recorded[i].second != present[i].second)
      refuse_change(text("what was ", entry_text(recorded)), entry_text(present));
  }
}

}  // namespace heed
