// Where --data searches.
#include <cstdlib>
#include <filesystem>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task.h"

using namespace heed;

TEST_CASE("find data: as it stands, inside HEED_DATA, the stem of a pair, or fetched here") {
  const Scratch scratch;
  const char* before = std::getenv("HEED_DATA");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("HEED_DATA", (scratch / "data").c_str(), 1);
  io::make_directories(scratch / "data/mnist");
  io::write(scratch / "data/corpus.en", "a\n");
  io::write(scratch / "data/corpus.it", "b\n");
  io::write(scratch / "data/lonely.en", "a\n");
  CHECK(find_data("mnist") == scratch / "data/mnist");
  CHECK(find_data("corpus") == scratch / "data/corpus");
  CHECK(find_data((scratch / "data/corpus.en").string()) == scratch / "data/corpus.en");
  CHECK(fault_of([] { find_data("lonely"); }) == Fault::file);
  CHECK(fault_of([&] { find_data((scratch / "data/none").string()); }) == Fault::file);
  const Path here = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path());
  CHECK(fault_of([] { find_data("imdb"); }) == Fault::file);
  io::make_directories("data-imdb");
  io::make_directories("data-mnist");
  CHECK(find_data("imdb") == "data-imdb");
  CHECK(find_data("mnist") == scratch / "data/mnist");  // what is there by name comes first
  std::filesystem::current_path(here);
  if (before != nullptr) {
    ::setenv("HEED_DATA", kept.c_str(), 1);
  } else {
    ::unsetenv("HEED_DATA");
  }
}
