// Reads the data of a session, in one process or several.
#include "heed/train/session/session_data.h"

#include <algorithm>

#include "heed/train/session/distributed_session.h"
#include "heed/train/session/loaded_run.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_tokenizers.h"

namespace heed {

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

}  // namespace heed
