// Inputs, folders and progress of the commands that look into heads.
#include "heed/train/commands/inspection.h"

#include "heed/core/io/files.h"
#include "heed/core/io/input_file.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/text/text.h"
#include "heed/train/loop/progress.h"

namespace heed {

bool is_phrasebook(Config& config) {
  if (config.task_name != "translate") return false;
  bool embedded = false, words = false;
  for (const OptionText& option : options_of(config)) {
    if (option.name == "data.path") embedded = option.value.empty();
    if (option.name == "data.tokenizer") words = option.value == "word";
  }
  return embedded && words;
}

Path output_folder(const ParsedArguments& arguments, const LoadedRun& run, const std::string& name) {
  const Path out = arguments.get("out", (run.folder.path() / name).string());
  if (arguments.has("out")) {
    io::make_directories(out);
  } else {
    io::make_directory(out);  // in a folder that may come from elsewhere: no link
  }
  return out;
}

std::vector<std::string> lines_of_file(const Path& path, const std::string& option) {
  const std::string bytes = io::read_input(path);
  std::vector<std::string> lines;
  for (const std::string_view line : split_lines(bytes))
    if (!line.empty()) lines.emplace_back(line);
  if (lines.empty())
    fail(Fault::data, option, ": ", path.string(), " has no lines. Give a file with one input a line.");
  return lines;
}

WorkProgress::WorkProgress(std::string what)
    : what_(std::move(what)), began_(seconds_now()), printed_(began_) {}

void WorkProgress::operator()(int64_t done, int64_t all) {
  constexpr double seconds_between = 2;
  const double now = seconds_now();
  if (now - printed_ < seconds_between || done >= all) return;
  printed_ = now;
  const double left = (now - began_) * static_cast<double>(all - done) / static_cast<double>(done);
  io::print_error(text("  ", done, " of ", all, " ", what_, ", ", clock_text(left), " left\n"));
}

}  // namespace heed
