// Makes the callback of train.maps_every, and says what it took.
#include "heed/train/commands/session_maps.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/byte_text.h"
#include "heed/train/tasks/task.h"

namespace heed {

KeepMaps maps_on_the_way(const Config& config, const RunFolder& folder) {
  const std::string given = config.train.maps_of;
  const std::string input = given.empty() ? config.task->example_text() : given;
  return KeepMaps(folder.path(),
                  {.every = config.train.maps_every, .most = config.train.maps_keep, .input = input},
                  [task = config.task.get(), input](Module& model, std::string& caption) {
                    return task->maps(model, input, caption);
                  });
}

std::string kept_words(const KeepMaps& maps, const RunFolder& folder, double seconds) {
  const double share = seconds > 0 ? 100 * maps.seconds() / seconds : 0;
  return text(list_kept_maps(folder.path()).size(), " steps kept in ",
              kept_maps_folder(folder.path()).string(), ", ", bytes_text(maps.bytes()), " each; ",
              maps.count(), " took ", picture::fixed(maps.seconds(), 2), " s, ", picture::fixed(share, 1),
              " % of the training");
}

}  // namespace heed
