// Searches data by path, in HEED_DATA and among fetched corpora.
#include "heed/train/tasks/find_data.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

/// True for the common stem of a Moses pair: corpus of corpus.en and corpus.it.
bool is_pair(const Path& path) {
  const std::string stem = path.filename().string() + ".";
  const std::vector<Path> names = io::list(path.parent_path().empty() ? Path(".") : path.parent_path());
  return std::count_if(names.begin(), names.end(),
                       [&](const Path& name) { return name.string().starts_with(stem); }) > 1;
}

}  // namespace

Path find_data(const std::string& path) {
  const char* root = std::getenv("HEED_DATA");
  std::vector<Path> places{path};
  if (root != nullptr && !Path(path).is_absolute()) places.push_back(Path(root) / path);
  for (const auto is_present : {io::exists, is_pair}) {
    for (const Path& place : places) {
      if (is_present(place)) return place;
    }
  }
  const Path fetched = "data-" + path;  // made by `heed data get NAME`
  if (!path.empty() && path.find('/') == std::string::npos && io::exists(fetched)) return fetched;
  if (places.size() == 1)
    fail(Fault::file, "data: ", path, " does not exist. Give ", advice("--data", "data.path"),
         " a file or folder that does, or name their folder in HEED_DATA.");
  fail(Fault::file, "data: neither ", path, " nor ", places[1], " exists. Give ",
       advice("--data", "data.path"), " a file or folder that does.");
}

}  // namespace heed
