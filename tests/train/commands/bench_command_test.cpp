// heed bench as a program: each part completes, and every line has its numbers.
#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/tests/catch.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

std::vector<Json> lines_of(const std::string& out) {
  std::vector<Json> lines;
  for (size_t at = 0; at < out.size(); at = out.find('\n', at) + 1)
    lines.push_back(parse_json(out.substr(at, out.find('\n', at) - at), "bench"));
  return lines;
}

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("bench: each part runs to its end, one object a line, with every number it promises", "[slow]") {
  const Shell shell;
  const std::vector<std::string> tiny{"--rounds", "2",  "--d-model", "32", "--heads",      "2",
                                      "--d-ff",   "32", "--layers",  "1",  "--batch-size", "2"};
  struct Part {
    std::vector<std::string> words, more;
    std::vector<const char*> numbers;
    size_t least;  // lines
  };
  const std::vector<Part> parts{
      {{"train", "baby", "baby-dropout"},
       tiny,
       {"step_ms", "tokens_per_s", "products_ms", "ratio", "gflops", "process_mib", "mapped_bytes"},
       2},
      {{"step", "casinoformer:exponent=0.5", "--from", "300", "--longest", "600"},
       {"--rounds", "2"},
       {"us", "speedup", "kflops"},
       4},
      {{"ops", "gelu"}, {}, {"ns", "ms", "pass_ns", "ratio", "gb_per_s"}, 2},
      {{"attention", "softmax"},
       {"--longest", "64"},
       {"forward_ms", "step_ms", "tokens_per_s", "products_ms", "ratio", "gflops", "of_limit", "forward_mib",
        "peak_mib"},
       2},
      {{"decode", "baby"}, {}, {"batch", "beam", "tokens_per_s", "us_per_step", "tensors_mib"}, 3},
      {{"gemm"}, {}, {"gflops", "share", "openblas_1", "ratio", "peak"}, 3},
  };
  for (const Part& part : parts) {
    CAPTURE(part.words[0]);
    const Result result =
        shell.run(joined({"bench"}, joined(part.words, joined({"--threads", "2", "--json"}, part.more))));
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    const std::vector<Json> lines = lines_of(result.out);
    REQUIRE(lines.size() >= part.least);
    for (const Json& line : lines) {
      CHECK(line.at("threads").integer() == 2);
      CHECK(!line.at("isa").text().empty());
      CHECK(!line.at("blas_core").text().empty());
      for (const char* name : part.numbers) {
        CAPTURE(name);
        REQUIRE(line.find(name) != nullptr);
        CHECK(std::isfinite(line.at(name).real()));
        CHECK(line.at(name).real() >= 0);
      }
    }
  }
  const Result table = shell.run(joined({"bench", "train", "baby"}, tiny));
  CHECK(table.code == 0);
  for (const char* column : {"step ms", "tokens/s", "products ms", "ratio", "process MiB", "mapped"})
    CHECK(table.out.find(column) != std::string::npos);
}

TEST_CASE("bench attention: --forward times no step") {
  const Shell shell;
  const std::vector<std::string> words{"bench", "attention", "linear", "--longest",
                                       "64",    "--threads", "1",      "--forward"};
  const Result result = shell.run(joined(words, {"--json", "--out", "pictures"}));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  const std::vector<Json> lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);  // softmax and linear, full and causal
  for (const Json& line : lines) {
    CHECK(line.at("forward_ms").real() > 0);
    CHECK(line.at("ratio").real() == Approx(line.at("forward_ms").real() / line.at("products_ms").real()));
    CHECK(line.find("step_ms") == nullptr);
    CHECK(line.find("softmax_step") == nullptr);
    CHECK((line.at("attention").text() == "softmax" || line.at("softmax_forward").real() > 0));
  }
  const Path out = shell.scratch / "pictures";
  CHECK(io::exists(out / "forward-d32-full.svg"));
  CHECK_FALSE(io::exists(out / "step-d32-full.svg"));
  CHECK_THAT(io::read(out / "crossovers.csv"), containing("\"linear\",1,32,"));
  const Result table = shell.run(words);
  CHECK_THAT(table.out, containing("forward ms"));
  CHECK_THAT(table.out, !containing("step ms"));
  CHECK_THAT(table.out, !containing("forward and backward"));
}
