// heed structure and heed maps: on arrays with known answers and on a small run.
#include <csignal>

#include "heed/core/io/json.h"
#include "heed/core/io/npy.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// Two heads of 6 tokens: one in the band of width 1, one uniform.
Array two_heads() {
  std::vector<float> weights;
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 6; ++j) weights.push_back(std::abs(i - j) <= 1 ? (i == j ? 0.5F : 0.25F) : 0.0F);
  }
  weights.insert(weights.end(), 36, 1.0F / 6);
  return Array::of<float>({2, 6, 6}, weights);
}

std::vector<std::string> small_run(const std::string& name) {
  return {"train",       "translate", "--steps",      "2",  "--d-model",      "16", "--heads",      "2",
          "--d-ff",      "16",        "--max-length", "32", "--num-examples", "60", "--validation", "6",
          "--test-size", "8",         "--name",       name, "--threads",      "1",  "--quiet"};
}

}  // namespace

TEST_CASE("structure: distances of heads whose nearest matrices are known") {
  const Shell shell;
  write_npy(shell.scratch / "heads.npy", two_heads());
  const Result result = shell.run({"structure", "heads.npy", "--width", "1", "--json", "--out", "found"});
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const Json found = parse_json(result.out, "output");
  const Json::List& heads = found.at("heads").list();
  REQUIRE(heads.size() == 2);
  CHECK(heads[0].at("distances").at("band").at("entrywise").real() == 0);
  CHECK(heads[0].at("distances").at("diagonal").at("entrywise").real() == Approx(2.5));
  CHECK(heads[0].at("least_row_sum").real() == Approx(0.75));
  CHECK(heads[1].at("distances").at("uniform").at("entrywise").real() == Approx(0).margin(1e-5));
  CHECK(heads[1].at("distances").at("band").at("entrywise").real() == Approx(20.0 / 6));
  CHECK(heads[1].at("rank").integer() == 1);
  CHECK(heads[1].at("band_distance_by_width").list().size() == 6);
  CHECK_THAT(io::read(shell.scratch / "found" / "structure.html"),
             containing("<svg") && containing("section class=\"maps\"") && containing("head 0</span>") &&
                 containing("<dt>distance</dt>"));
  CHECK_THAT(io::read(shell.scratch / "found" / "sweep-0.svg"), containing("head 1"));
  CHECK(parse_json(io::read(shell.scratch / "found" / "structure.json"), "file").dump() == found.dump());

  const Result words = shell.run({"structure", "heads.npy", "--width", "1", "--search", "1"});
  CHECK(words.code == 0);
  CHECK_THAT(words.out, containing("search") && containing("Rows sum to 0.75 to 1.00: dropout was on"));
  CHECK(words.out ==
        shell.run({"structure", "heads.npy", "--width", "1", "--search", "1", "--threads", "2"}).out);
}

TEST_CASE("structure: wrong use is named") {
  const Shell shell;
  write_npy(shell.scratch / "heads.npy", two_heads());
  write_npy(shell.scratch / "cross.npy", Array::of<float>({1, 1, 2}, std::vector<float>{0.5F, 0.5F}));
  check_refused(shell, {"structure", "nothing.npy"}, 5, {"nothing.npy"});
  check_refused(shell, {"structure", "heads.npy", "--width", "-1"}, 2, {"--width = -1", "0 to 512"});
  CHECK(shell.run({"structure", "heads.npy", "--seed", "9223372036854775807"}).code == 0);
  check_refused(shell, {"structure", "heads.npy", "--dropout", "1"}, 2, {"--dropout = 1"});
  check_refused(shell, {"structure", "heads.npy", "--errors", "2"}, 2, {"--errors goes with --eps"});
  check_refused(shell, {"structure", "heads.npy", "--kind", "coder"}, 2, {"--kind 'coder'", "encoder"});
  check_refused(shell, {"structure", "heads.npy", "text"}, 2, {"TEXT goes with a run"});
  check_refused(shell, {"structure", "heads.npy", "--checkpoint", "best"}, 2, {"--checkpoint is for a run"});
  check_refused(shell, {"structure", "cross.npy"}, 3, {"no square map"});
  // An empty array's other extents are those of no file, however large they are.
  const std::vector<std::vector<int64_t>> without{
      {100000000000, 0, 0}, {1, 0, 0}, {1, 100000000000, 0}, {0, 3, 3}};
  for (const std::vector<int64_t>& shape : without) {
    write_npy(shell.scratch / "empty.npy", Array::of<float>(shape, {}));
    check_refused(shell, {"structure", "empty.npy"}, 3, {"empty.npy", "has no weights"});
  }
}

TEST_CASE("maps: of a run's test examples and of lines of text, and their structure") {
  const Shell shell;
  REQUIRE(shell.run(small_run("small")).code == 0);
  const Result all = shell.run({"maps", "runs/small", "--out", "all", "--quiet"});
  CAPTURE(all.err);
  REQUIRE(all.code == 0);
  CHECK_THAT(all.out, containing("8 of 8 examples"));
  const Json manifest = parse_json(io::read(shell.scratch / "all" / "manifest.json"), "manifest");
  CHECK(manifest.at("complete").boolean());
  CHECK(manifest.at("examples").list().size() == 8);
  CHECK(manifest.at("checkpoint").integer() == 2);

  io::write(shell.scratch / "lines.txt",
            "The old man smiles.\tIl vecchio sorride.\n\nAnna reads.\nThe cat sleeps.\n");
  const Result lines = shell.run({"maps", "runs/small", "--data", "lines.txt", "--count", "2", "--format",
                                  "npy", "--out", "lines", "--quiet"});
  CAPTURE(lines.err);
  REQUIRE(lines.code == 0);
  const Json two = parse_json(io::read(shell.scratch / "lines" / "manifest.json"), "manifest");
  REQUIRE(two.at("examples").list().size() == 2);
  CHECK_THAT(two.at("examples").list()[0].at("caption").text(),
             Catch::Matchers::StartsWith("The old man smiles."));
  CHECK(io::exists(shell.scratch / "lines" / "000001-2.npy"));

  std::string words;
  for (int i = 0; i < 300; ++i) words += "man ";
  io::write(shell.scratch / "long.txt", "The old man smiles.\n" + words + "\n");
  const Result some = shell.run({"maps", "runs/small", "--data", "long.txt", "--out", "long", "--quiet"});
  CHECK(some.code == 0);
  CHECK_THAT(some.err,
             containing("1 input is left out") && containing("long.txt:2: the sentence has 300 tokens"));
  const Json left = parse_json(io::read(shell.scratch / "long" / "manifest.json"), "manifest");
  CHECK(left.at("left_out").list().size() == 1);
  CHECK(left.at("examples").list().size() == 1);
  check_refused(shell, {"inspect", "runs/small", words}, 2, {"the sentence has 300 tokens", "Shorten it"});
  check_refused(shell, {"inspect", "runs/small", "The man. ||| " + words}, 2, {"the target has 300 tokens"});
  const Result said = shell.run({"translate", "runs/small", "The man.", words});
  CHECK(said.code == 0);
  CHECK_THAT(said.err, containing("warning: of sentence 2 the last ") && containing(" tokens are left out"));

  const Result means = shell.run({"structure", "all", "--kind", "encoder", "--num-pos", "1"});
  CAPTURE(means.err);
  REQUIRE(means.code == 0);
  CHECK_THAT(means.out, containing("Means over 8 maps of each head.\n") && containing("encoder.blocks.0"));
  const Result run = shell.run({"structure", "runs/small", "The old man smiles.", "--num-pos", "1"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, containing("decoder") && containing("1 map left out"));

  const auto named = [&](const std::vector<std::string>& more) {
    const Result heads = shell.run(with({"heads", "runs/small", "--json"}, more));
    CAPTURE(heads.err);
    REQUIRE(heads.code == 0);
    return parse_json(heads.out, "heads").at("heads").list()[0].dump();
  };
  io::write(shell.scratch / "long.txt", "The old man smiles and the cat sleeps.\n");
  CHECK(named({"--file", "long.txt", "--max-tokens", "5"}) != named({"--file", "long.txt"}));
  check_refused(shell, {"maps", "runs/small", "--out", "all"}, 2, {"holds maps or a run already"});
  check_refused(shell, {"maps", "runs/small"}, 2, {"--out FOLDER"});
  check_refused(shell, {"maps", "runs/small", "--out", "x", "--count", "0"}, 2, {"--count = 0"});
  check_refused(shell, {"maps", "runs/small", "--out", "x", "--format", "png"}, 2, {"--format 'png'"});
  check_refused(shell, {"maps", "runs/small", "--out", "x", "--data", "none.txt"}, 5, {"none.txt"});
}
