// Fuzz target: lines of metrics.jsonl, whose reader skips damage.
#include "heed/core/io/files.h"
#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/run/metrics_log.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".jsonl");
  std::vector<MetricSeries> series;
  const law::Bounds bounds{.per_byte = 100};
  law::demand(law::obeys(
                  path.string(), input, [&] { series = read_metrics(path); }, bounds),
              "any file of metrics can be read");
  int64_t numbers = 0;
  for (const MetricSeries& one : series) {
    law::demand(!one.name.empty() || one.steps.size() == one.values.size(), "a step for each value");
    numbers += static_cast<int64_t>(one.steps.size());
  }
  write_metrics_csv(path, path.string() + ".csv");
  constexpr int64_t step = 20;
  MetricsLog log(path, path.string() + ".tb");
  log.truncate_to(step);
  int64_t kept = 0, all = 0;
  for (const MetricSeries& one : series) all += static_cast<int64_t>(one.steps.size());
  for (const MetricSeries& one : read_metrics(path)) {
    kept += static_cast<int64_t>(one.steps.size());
    for (const int64_t at : one.steps) law::demand(at <= step, "no step after the one that is gone back to");
  }
  law::demand(kept <= all && numbers == all, "going back adds nothing");
  const std::string lines = io::read(path);
  law::demand(lines.empty() || lines.back() == '\n', "no torn line is left");
  return 0;
}
