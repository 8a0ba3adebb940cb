// heed bench on a device: every part runs, with plausible columns. On the emulated device only times are
// meaningless.
#include <cmath>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/device.h"
#include "heed/core/io/json.h"
#include "heed/tests/train/shell.h"

using namespace heed;

namespace {

/// The rows that `heed bench` prints with these words on the device; none where there is no device.
std::vector<Json> rows_of(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  words.insert(words.end(), {"--device", "cuda", "--json"});
  const Shell shell;
  const Result result = shell.run(words);
  INFO(result.err);
  REQUIRE(result.code == 0);
  std::vector<Json> rows;
  size_t at = 0;
  while (at < result.out.size()) {
    const size_t end = std::min(result.out.find('\n', at), result.out.size());
    if (result.out[at] == '{') rows.push_back(parse_json(result.out.substr(at, end - at), "bench"));
    at = end + 1;
  }
  REQUIRE(!rows.empty());
  for (const Json& row : rows) {
    CHECK(row.at("device").text() == "cuda");
    CHECK(!row.at("gpu").text().empty());
  }
  return rows;
}

void check_positive(const Json& row, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    CAPTURE(key, row.dump());
    const double value = row.at(key).real();
    CHECK(std::isfinite(value));
    CHECK(value > 0);
  }
}

bool no_device() { return devices().size() < 2; }

const std::vector<std::string> tiny{"--d-model", "32", "--heads",      "2",  "--d-ff",       "32",
                                    "--layers",  "1",  "--max-length", "12", "--batch-size", "4",
                                    "--rounds",  "2"};

}  // namespace

TEST_CASE("bench on a device: the limits, with their units") {
  if (no_device()) return;
  const std::vector<Json> rows = rows_of({"limits"});
  std::string names;
  for (const Json& row : rows) {
    check_positive(row, {"value"});
    CHECK(!row.at("unit").text().empty());
    names += row.at("limit").text() + "; ";
  }
  for (const char* name : {"copy", "f32", "tf32", "bf16", "small kernel", "waiting"}) {
    CAPTURE(name, names);
    CHECK(names.find(name) != std::string::npos);
  }
}

TEST_CASE("bench on a device: training steps with launches, share of the limit, and memory") {
  if (no_device()) return;
  for (const char* precision : {"f32", "tf32", "bf16"}) {
    CAPTURE(precision);
    std::vector<std::string> words{"train", "patches", "baby"};
    words.insert(words.end(), tiny.begin(), tiny.end());
    words.insert(words.end(), {"--precision", precision});
    const std::vector<Json> rows = rows_of(words);
    CHECK(rows.size() == 2);
    for (const Json& row : rows) {
      check_positive(row,
                     {"step_ms", "tokens_per_s", "products_ms", "tflops", "mfu", "launches", "tensors_mib"});
      CHECK(row.at("launches").real() > 20);  // a step of one layer starts far more kernels than that
      CHECK(row.at("launches").real() < 2000);
      CHECK(row.at("replayed").boolean() == row.at("why_not_replayed").text().empty());
      CHECK(row.at("mapped_bytes").integer() == 0);
    }
    CHECK(rows[0].at("replayed").boolean());
  }
}

TEST_CASE("bench on a device: a step by kernel, predicted where the device is emulated") {
  if (no_device()) return;
  std::vector<std::string> words{"kernels", "patches"};
  words.insert(words.end(), tiny.begin(), tiny.end());
  const std::vector<Json> rows = rows_of(words);
  REQUIRE(rows.size() > 5);
  for (const Json& row : rows) {
    check_positive(row, {"launches", "bytes", cuda::emulated ? "predicted_ms" : "ms"});
    CHECK(row.at("launches").integer() >= row.at("calls").integer());
    CHECK((row.find("card") != nullptr) == cuda::emulated);
  }
  CHECK(rows.back().at("launches").integer() > rows.back().at("calls").integer());  // copies to bf16 and sums
}

TEST_CASE("bench on a device: attention against length, in each precision") {
  if (no_device()) return;
  for (const char* precision : {"f32", "bf16"}) {
    const std::vector<Json> rows =
        rows_of({"attention", "softmax", "window", "--longest", "64", "--precision", precision});
    CHECK(rows.size() == 4);
    for (const Json& row : rows)
      check_positive(row, {"forward_ms", "step_ms", "gflops", "of_limit", "peak_mib"});
  }
}

TEST_CASE("bench on a device: products and ops as shares of what the device can do", "[slow]") {
  if (no_device()) return;
  bool rounded = false;
  for (const Json& row : rows_of({"gemm"})) {
    check_positive(row, {"gflops", "share", "gflops_tf32", "share_tf32"});
    if (row.find("gflops_bf16") == nullptr) continue;
    rounded = true;
    check_positive(row, {"gflops_bf16", "share_bf16"});
  }
  CHECK(rounded);
  for (const char* word :
       {"copy", "softmax of 64", "AdamW of 0.8M", "embedding", "sum of rows", "sort", "scan"}) {
    for (const Json& row : rows_of({"ops", word}))
      check_positive(row, {"ns", "pass_ns", "share", "gb_per_s"});
  }
}
