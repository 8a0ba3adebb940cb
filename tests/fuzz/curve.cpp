// Fuzz target: curves of runs on file, and the scores in their facts.
#include <cmath>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"
#include "heed/train/experiments/reproduction_parts.h"

using namespace heed;

namespace {

std::string read_again(const std::string& bytes) {
  const CurveFile file = read_curve_csv(law::planted(bytes, ".again"));
  std::vector<std::pair<std::string, std::string>> facts(file.facts.begin(), file.facts.end());
  std::erase_if(facts, [](const auto& fact) { return fact.first == "points"; });
  return curve_csv(file.curve, facts, bytes.size() + 1000);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const Path path = law::planted(input, ".csv");
  FiledRun run;
  const law::Bounds bounds{.per_byte = 400};
  if (law::obeys(
          path.string(), input, [&] { run = read_filed_run(path, "softmax", 1); }, bounds)) {
    for (const auto& [name, value] : run.run.scores)
      law::demand(!name.empty() && std::isfinite(value), "a score is a number with a name");
    law::demand(run.run.step >= 0 && run.run.step <= max_curve_step, "a step is a count");
    law::demand(run.run.steps >= 0 && run.run.examples >= 0, "what counts is not below 0");
    const CurveFile file = read_curve_csv(path);
    law::demand(!file.curve.points.empty(), "a curve has points");
    const std::string once = read_again(std::string(input));
    law::demand(read_again(once) == once, "what is written is read");
    for (const auto& [name, value] : file.facts) {
      const std::string shown_value = markdown_escaped(value);
      law::demand(shown_value.find('<') == std::string::npos && shown_value.find('\n') == std::string::npos,
                  "a page has no markup of a file");
    }
  }
  return 0;
}
