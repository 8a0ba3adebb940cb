// Reads the data of a session, in one process or several, and compares them with those of the run.
#include "heed/train/session/session_data.h"

#include <algorithm>

#include "heed/core/io/json.h"
#include "heed/train/distributed/processes.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/distributed_session.h"
#include "heed/train/session/loaded_run.h"

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

void load_data(Config& config, const Checkpoint* known, Progress& progress, ProcessGroup& group) {
  std::vector<NamedBytes> artifacts = known != nullptr ? tokenizer_files(*known) : std::vector<NamedBytes>{};
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
  const std::optional<Json> read = folder.read_manifest();
  if (!read) return;
  const Json& manifest = *read;
  const Facts metadata = config.task->metadata();
  for (const auto& [name, value] : metadata) {
    const Json* before = is_hash(name) ? nullptr : manifest.find(name);
    if (before != nullptr && before->is_text() && before->text() != value)
      refuse(text(name, " was ", before->text()), value);
  }
  // Hashes are compared by their order, since some are named after files, which may be renamed.
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
