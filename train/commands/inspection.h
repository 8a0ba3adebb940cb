// What heed heads and heed ablate share: inputs, where files go, progress.
#pragma once

#include <string>
#include <vector>

#include "heed/train/commands/command.h"
#include "heed/train/commands/loaded_run.h"

namespace heed {

/// True when a run's data are the embedded phrasebook in words, whose word alignment is known.
bool is_phrasebook(Config& config);

/// The folder of --out, which is made with those above it, or the folder `name` in the run, which is no link.
Path output_folder(const ParsedArguments& arguments, const LoadedRun& run, const std::string& name);

/// The lines of a text file, without empty ones. Fault::data when there are none.
std::vector<std::string> lines_of_file(const Path& path, const std::string& option);

/// Says now and then, on standard error, how far work is and how long the rest takes.
class WorkProgress {
 public:
  explicit WorkProgress(std::string what);  ///< what is counted, in the plural: "examples"
  void operator()(int64_t done, int64_t all);

 private:
  std::string what_;
  double began_, printed_;
};

}  // namespace heed
