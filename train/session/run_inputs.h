// What commands that look into a run read beside it, and where they write.
#pragma once

#include <string>
#include <vector>

#include "heed/train/inspect/map_source.h"
#include "heed/train/program.h"

namespace heed {

/// True when a run's data are the embedded phrasebook in words, whose word alignment is known.
bool is_phrasebook(Config& config);

/// The folder of --out, which is made with those above it; else the folder `name` in the run, which is made
/// where it is missing. No link is followed in the run, which may come from elsewhere.
Path output_folder(const ParsedArguments& arguments, const Path& run, const std::string& name);

/// Whether a task must read its data to find this input of a model: an example by its number, or none given.
bool needs_data(const std::string& input);

/// Writes the tensors of batches as safetensors: 000000.NAME and so on, by the names of Task::tensor_names().
void write_batches(const Path& path, const Task& task, const std::vector<Batch>& batches);

/// Reads inputs from a text file, gzip or not: one a line, at most `count` (0: all), without blank lines. An
/// input ends at the first character of `until` in its line. Fault::data where there are none, and for what
/// is not UTF-8.
MappedLines lines_of_file(const Path& path, const std::string& option, int64_t count,
                          std::string_view until = "");

}  // namespace heed
