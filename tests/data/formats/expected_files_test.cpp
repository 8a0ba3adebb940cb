// Errors for missing files in a data folder.
#include "heed/data/formats/expected_files.h"

#include "heed/data/formats/cifar.h"
#include "heed/data/formats/idx.h"
#include "heed/data/synthetic/listops.h"
#include "heed/data/synthetic/pathfinder.h"
#include "heed/tests/data/scratch.h"

using namespace heed;

TEST_CASE("expected files: what is missing, what is needed and how to get it are named") {
  const Scratch scratch;
  const ExpectedFiles wanted{
      .what = "Toys", .names = {"a.txt", "b.txt", "c.txt"}, .gzip = true, .bring = "Fetch them."};
  const auto said = [&](const Path& path) {
    return refusal(Fault::file, [&] { expect_files(path, wanted); });
  };
  const std::string needed =
      "Toys is a folder of a.txt, b.txt and c.txt, each plain or with .gz. Fetch them.";
  CHECK_THAT(said(scratch.path()), containing(" holds none of its files. " + needed));
  const Path a = scratch.file("a.txt", "a");
  scratch.file("b.txt.gz", "b");
  CHECK_THAT(said(scratch.path()), containing(scratch.path().string() + " lacks c.txt. " + needed));
  CHECK_THAT(said(a), containing("a.txt is no folder. " + needed));
  CHECK_THAT(said(scratch.path() / "none"), containing("none is no folder."));
  scratch.file("c.txt", "c");
  expect_files(scratch.path(), wanted);
}

TEST_CASE("expected files: every set of files says its own") {
  const Scratch scratch;
  const Path file = scratch.file("file", "text");
  const std::string mnist = refusal(Fault::file, [&] { read_mnist(scratch.path(), false); });
  for (const char* part : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte", "with .gz", "heed data get mnist"})
    CHECK_THAT(mnist, containing(part));
  CHECK_THAT(refusal(Fault::file, [&] { read_mnist(file, true); }), containing("file is no folder"));
  scratch.file("basic_train.tsv", "Source\tTarget\n");
  const std::string listops = refusal(Fault::file, [&] { read_listops_folder(scratch.path()); });
  CHECK_THAT(listops, containing("lacks basic_val.tsv and basic_test.tsv"));
  CHECK_THAT(listops, containing("heed data generate listops --out"));
  CHECK_THAT(refusal(Fault::file, [&] { read_cifar(file, false); }), containing("data generate image"));
  CHECK_THAT(refusal(Fault::file, [&] { read_pathfinder(file, 32); }),
             containing("data generate pathfinder"));
}
