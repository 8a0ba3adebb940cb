// Runs this program as a subprocess for what it measures, and keeps the result in a file.
#include "heed/train/experiments/child_measurement.h"

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/loop/stop_signals.h"

namespace heed {
namespace {

constexpr int64_t max_result_bytes = int64_t{1} << 20;  // limit of the object that a subprocess prints

}  // namespace

std::string machine_word(const ComparisonOptions& options) {
  const std::string name = file_word(picture::joined(options.machine, " "));
  return name.empty() ? "" : "-" + name;
}

ChildEnd run_heed(std::vector<std::string> arguments, const ComparisonOptions& options,
                  const TimeBudget& budget) {
  stop_if_asked(budget);
  arguments.insert(arguments.end(), options.machine.begin(), options.machine.end());
  const ChildEnd end = run_child(
      arguments, [] {}, [&] { return budget.spent(); });
  if (end.stop_requested && end.code != 0) throw Stopped{StopSignals::received()};
  if (end.code != 0) throw Error(fault_of(end), reason(end));
  return end;
}

double measured_number(const Path& file, const std::vector<std::string>& keys,
                       const std::vector<std::string>& arguments, const ComparisonOptions& options) {
  if (!io::exists(file)) {
    const ChildEnd end = run_heed(arguments, options, options.budget);
    const std::string& output = end.output;
    const size_t begin = output.starts_with('{') ? 0 : output.rfind("\n{") + 1;  // start of the last object
    const std::string object = output.substr(begin, output.find('\n', begin) - begin);
    const std::string name = file.filename().string();
    if (!object.starts_with('{')) fail(Fault::internal, name, ": ", reason(end));
    io::make_directories(file.parent_path());
    io::write_own(file, parse_json(object, name).dump() + "\n");
  }
  return with_remeasuring_advice(file, [&] {
    const Json json = parse_json(io::read(file, max_result_bytes), file.string());
    for (const std::string& key : keys) {
      const Json* number = json.is_object() ? json.find(key) : nullptr;
      if (number == nullptr) continue;
      if (!number->is_number() || !(number->real() > 0))
        fail(Fault::data, file, ": '", key, "' is ", shown(number->dump(), 40),
             ". It must be a number above 0.");
      return number->real();
    }
    fail(Fault::data, file, ": byte 0: no object with '", keys.front(), "'.");
  });
}

}  // namespace heed
