// Inputs and folders of the commands that look into heads.
#include "heed/train/session/run_inputs.h"

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/data/text/text.h"

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

MappedLines lines_of_file(const Path& path, const std::string& option, int64_t count,
                          std::string_view until) {
  const std::string content = io::read_text(path);
  check_text(content, path.string());
  MappedLines out;
  int64_t number = 0;
  for (std::string_view line : split_lines(content)) {
    ++number;
    line = line.substr(0, line.find_first_of(until));
    if (trimmed(line).empty()) continue;
    out.texts.emplace_back(line);
    out.places.push_back(text(path, ":", number));
    if (static_cast<int64_t>(out.texts.size()) == count) break;
  }
  if (out.texts.empty())
    fail(Fault::data, option, ": ", path, " has no line of text. Give a file with one input a line.");
  return out;
}

}  // namespace heed
