// Tests of core/io/embedded_files.h: what is inside the program is what the source tree has.
#include "heed/core/io/embedded_files.h"

#include <algorithm>
#include <string>

#include "heed/core/error.h"
#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/source_paths.h"

using namespace heed;

TEST_CASE("embedded files: each is the file of the tree, of scripts and styles what follows the first line") {
  int64_t presets = 0, scripts = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string path(file.path);
    CAPTURE(path);
    std::string whole = io::read(source_folder() + "/" + path);
    const bool script = path.ends_with(".js") || path.ends_with(".css");
    if (script) whole.erase(0, whole.find('\n') + 1);
    CHECK(whole == file.text);
    CHECK(embedded_file(file.path) == file.text);
    scripts += script ? 1 : 0;
    presets += path.ends_with(".toml") ? 1 : 0;
  }
  CHECK(scripts >= 5);
  CHECK(presets >= 40);
}

TEST_CASE("embedded files: one that is not there is named") {
  CHECK_THROWS_WITH(embedded_file("train/presets/none.toml"), containing("train/presets/none.toml"));
}
