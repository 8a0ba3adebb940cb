// Options that several parts of `heed bench` take.
#include "heed/train/bench/bench.h"

#include "heed/attention/variant.h"

namespace heed::bench {

int64_t integer_option(const ParsedArguments& arguments, const char* name, int64_t default_value, int64_t low,
                       int64_t high) {
  const int64_t value = arguments.integer(name, default_value);
  if (value < low || value > high) fail("--", name, " = ", value, ". It must be ", low, " to ", high, ".");
  return value;
}

double seconds_option(const ParsedArguments& arguments, double default_value) {
  const double seconds = arguments.number("seconds", default_value);
  if (!(seconds > 0)) fail("--seconds = ", seconds, ". It must be above 0.");
  return seconds;
}

std::vector<std::string> spec_arguments(const ParsedArguments& arguments,
                                        std::vector<std::string> default_specs) {
  std::vector<std::string> specs(arguments.positional.begin() + 1, arguments.positional.end());
  if (specs.empty()) specs = std::move(default_specs);
  for (const std::string& spec : specs) full_spec(spec);  // fails for an unknown attention or option
  return specs;
}

std::vector<std::string> after_softmax(std::vector<std::string> specs) {
  std::erase(specs, "softmax");
  specs.insert(specs.begin(), "softmax");
  return specs;
}

}  // namespace heed::bench
