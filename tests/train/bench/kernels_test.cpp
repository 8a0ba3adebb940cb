// heed bench kernels: its sums, its predictions, what it refuses, and that it fits a terminal.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "heed/core/io/json.h"
#include "heed/core/kernel_log.h"
#include "heed/core/operation_count.h"
#include "heed/tests/train/shell.h"
#include "heed/train/bench/predicted_time.h"
#include "heed/train/bench/stepper.h"

using namespace heed;

namespace {

const std::vector<std::string> tiny_kernels{
    "bench", "kernels",      "baby", "--d-model", "32", "--heads",      "2",  "--d-ff",    "32", "--layers",
    "1",     "--batch-size", "2",    "--rounds",  "2",  "--max-length", "16", "--threads", "2"};

std::vector<std::string> tiny_with(const std::vector<std::string>& more) {
  std::vector<std::string> words = tiny_kernels;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The rows of kernels, and behind them the row of their sums.
std::vector<Json> kernel_rows(const std::vector<std::string>& more) {
  const Result result = Shell().run(tiny_with(more));
  CAPTURE(result.err);
  REQUIRE(result.code == 0);
  std::vector<Json> rows;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) rows.push_back(parse_json(line, "bench"));
  REQUIRE(rows.size() > 5);
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].at("total").boolean() == (i + 1 == rows.size()));
    CHECK(rows[i].at("threads").integer() == 2);
  }
  return rows;
}

/// Sum of a number over the kernels.
double sum_over(const std::vector<Json>& rows, const char* key) {
  double sum = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) sum += rows[i].at(key).real();
  return sum;
}

void check_sums(const std::vector<Json>& rows, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    CAPTURE(key);
    CHECK(rows.back().at(key).real() > 0);
    CHECK(rows.back().at(key).real() == Approx(sum_over(rows, key)));
  }
}

}  // namespace

TEST_CASE("bench kernels: a prediction is the longer of bytes and operations, and the launches") {
  const bench::Card card{.name = "round",
                         .source = "nothing",
                         .bytes_per_second = 1000,
                         .exact_flops = 10,
                         .tf32_flops = 20,
                         .bf16_flops = 40,
                         .seconds_per_launch = 0.5};
  const KernelCall copied{.kernel = "Copy", .launches = 1, .bytes = 3000},
      multiplied{.kernel = "Gemm", .launches = 2, .bytes = 3000, .flops = 80};
  CHECK(bench::predicted_seconds(copied, card) == 3 + 0.5);
  CHECK(bench::predicted_seconds(multiplied, card) == 8 + 1.0);
  const auto rounded_to = [&](Rounding rounding) {
    KernelCall call = multiplied;
    call.rounding = rounding;
    return bench::predicted_seconds(call, card);
  };
  CHECK(rounded_to(Rounding::tf32) == 4 + 1.0);
  CHECK(rounded_to(Rounding::bf16) == 3 + 1.0);
  CHECK(std::string(bench::cards()[0].name) == "h100");
  ParsedArguments arguments;
  CHECK(&bench::predicted_card(arguments) == bench::cards().data());
}

TEST_CASE("bench kernels: the calls of a step have all operations that are counted") {
  ParsedArguments arguments;
  arguments.options = {{"d-model", {"16"}}, {"heads", {"2"}},       {"d-ff", {"16"}},
                       {"layers", {"1"}},   {"max-length", {"12"}}, {"batch-size", {"2"}}};
  const std::string row = GENERATE("baby-dropout", "lra-fastmax2", "translator-real");
  CAPTURE(row);
  bench::Workload work = bench::workload(row, arguments);
  bench::Stepper step(work);
  step.run_eagerly(0);
  const KernelLog log;
  Count::reset();
  step.run_eagerly(0);
  int64_t flops = 0;
  for (const KernelCall& call : log.calls()) flops += call.flops;
  CHECK(flops == Count::flops());
  CHECK(flops > 0);
}

TEST_CASE("bench kernels: rows of a small model, their sums and rates") {
  const std::vector<Json> rows = kernel_rows({"--json"});
  check_sums(rows, {"calls", "launches", "bytes", "flops", "ms", "share"});
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    CAPTURE(row.dump());
    const double ms = row.at("ms").real();
    CHECK(row.at("row").text() == "baby");
    CHECK(ms > 0);
    CHECK(row.at("launches").integer() == row.at("calls").integer());
    CHECK(row.at("gb_per_s").real() == Approx(1e-6 * row.at("bytes").real() / ms));
    CHECK(row.at("gflops").real() == Approx(1e-6 * row.at("flops").real() / ms));
    CHECK(row.at("share").real() == Approx(100 * ms / rows.back().at("step_ms").real()));
    CHECK((i == 0 || i + 1 == rows.size() || ms <= rows[i - 1].at("ms").real()));
  }
  const Json& total = rows.back();
  CHECK(total.at("kernel").text() == "all kernels");
  CHECK(total.at("between_ms").real() == Approx(total.at("step_ms").real() - total.at("ms").real()));
  const auto has_row = [&](const char* kernel) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Json& row) { return row.at("kernel").text() == kernel; });
  };
  for (const char* kernel : {"Linear", "LinearBack", "Attention", "AttentionBack", "LayerNorm", "AdamW"}) {
    CAPTURE(kernel);
    CHECK(has_row(kernel));
  }
}

TEST_CASE("bench kernels: predicted rows have no time of this machine") {
  const std::vector<Json> rows = kernel_rows({"--json", "--predict-on", "h100"});
  check_sums(rows, {"launches", "bytes", "flops", "predicted_ms"});
  for (const Json& row : rows) {
    CAPTURE(row.dump());
    CHECK(row.at("card").text() == "h100");
    CHECK(row.find("ms") == nullptr);
    CHECK(row.find("step_ms") == nullptr);
    CHECK(row.at("predicted_ms").real() >= 4.3e-3 * row.at("launches").real());
  }
  CHECK(rows.back().at("share").real() == Approx(100));
}

TEST_CASE("bench kernels: its tables say what they are and fit 80 columns") {
  const Shell shell{.scratch = Scratch(), .before = {"env", "COLUMNS=80"}};
  for (const bool is_predicted : {false, true}) {
    CAPTURE(is_predicted);
    const Result table =
        shell.run(is_predicted ? tiny_with({"--predict-on", "h100", "--precision", "f32"}) : tiny_kernels);
    CAPTURE(table.out, table.err);
    REQUIRE(table.code == 0);
    CHECK_THAT(table.out, containing("A step of baby on a batch of shape [2, 16]."));
    CHECK_THAT(table.out, containing("kernel ") && containing(" launches ") && containing("all kernels "));
    if (is_predicted) {
      CHECK_THAT(table.out, containing("Predicted for h100, not measured") && containing("bound by"));
      CHECK_THAT(table.out, containing("cuda.md") && !containing("A step as trained"));
    } else {
      CHECK_THAT(table.out, containing("GFLOP/s") && containing("A step as trained takes"));
      CHECK_THAT(table.out, !containing("redicted"));
    }
    std::istringstream lines(table.out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("bench kernels: what it refuses") {
  const Shell shell;
  const auto check_fails = [&](const std::vector<std::string>& words, const std::string& message) {
    std::vector<std::string> all{"bench"};
    all.insert(all.end(), words.begin(), words.end());
    const Result result = shell.run(all);
    CAPTURE(result.out);
    CHECK(result.code == 2);
    std::string unfolded = result.err;  // the terminal's width decides where lines end
    std::replace(unfolded.begin(), unfolded.end(), '\n', ' ');
    CHECK_THAT(unfolded, containing(message));
  };
  check_fails({"kernels", "babi"}, "bench kernels: 'babi' is unknown. Did you mean 'baby'?");
  check_fails({"kernels", "baby", "lra"}, "bench kernels: unexpected argument 'lra'");
  check_fails({"kernels", "baby", "--predict-on", "h10"}, "Did you mean 'h100'?");
  check_fails({"kernels", "baby", "--rounds", "0"}, "--rounds = 0");
  check_fails({"kernels", "baby", "--longest", "64"}, "bench kernels: --longest does not go with it");
  check_fails({"train", "baby", "--predict-on", "h100"}, "bench train: --predict-on does not go with it");
}
