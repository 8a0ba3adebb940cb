// Inputs and output folders of the commands that analyse a run.
#pragma once

#include <string>
#include <vector>

#include "heed/train/inspect/map_source.h"
#include "heed/train/program.h"

namespace heed {

/// Whether a run's data are the embedded phrasebook in words, whose word alignment is known.
bool is_phrasebook(Config& config);

/// Makes the folder for the output of a command: that of --out, with its parents; else the folder `name` in
/// the run, where no link is followed, since the run may be of somebody else.
Path output_folder(const ParsedArguments& arguments, const Path& run, const std::string& name);

/// Whether a task must read its data to find this input: the number of an example, or an empty input.
bool needs_data(const std::string& input);

/// Writes the tensors of batches as safetensors: 000000.NAME and so on, by the names of Task::tensor_names().
void write_batches(const Path& path, const Task& task, const std::vector<Batch>& batches);

/// Reads at most `count` (0: all) inputs from a text file, gzip or not: one a line, without blank lines. An
/// input ends at the first character of `until` in its line. `option` names the option in errors. Fault::data
/// where the file has no input or is not UTF-8.
MappedLines lines_of_file(const Path& path, const std::string& option, int64_t count,
                          std::string_view until = "");

}  // namespace heed
