// Reads inputs, and makes folders of output.
#include "heed/train/session/run_inputs.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/safetensors.h"
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

Path output_folder(const ParsedArguments& arguments, const Path& run, const std::string& name) {
  if (!arguments.has("out")) {
    io::make_directory(run / name);  // fails for a link; make_directories() follows links
    return run / name;
  }
  io::make_directories(arguments.get("out"));
  return arguments.get("out");
}

bool needs_data(const std::string& input) {
  return std::all_of(input.begin(), input.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void write_batches(const Path& path, const Task& task, const std::vector<Batch>& batches) {
  const std::vector<std::string> names = task.tensor_names();
  std::vector<Tensor> kept;
  std::vector<TensorBytes> list;
  for (size_t number = 0; number < batches.size(); ++number) {
    const std::vector<Tensor>& tensors = batches[number].tensors;
    if (names.size() > tensors.size()) {
      fail(Fault::internal, "the task names ", names.size(), " tensors of a batch, and a batch has ",
           tensors.size(), ".");
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& x = kept.emplace_back(contiguous(tensors[i]).to(Device::cpu));
      list.push_back({formatted("%06zu.", number) + tensor_name(names, i), to_string(x.dtype()),
                      std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                      std::span(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.bytes()))});
    }
  }
  write_safetensors(path, list);
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
