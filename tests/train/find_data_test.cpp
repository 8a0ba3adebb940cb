// Where --data looks.
#include <cstdlib>

#include "core/io.h"
#include "tests/catch.h"
#include "tests/scratch.h"
#include "train/task.h"

using namespace heed;

TEST_CASE("find data: as it stands, inside HEED_DATA, or the stem of a pair") {
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
  if (before != nullptr) {
    ::setenv("HEED_DATA", kept.c_str(), 1);
  } else {
    ::unsetenv("HEED_DATA");
  }
}
