// Reads the index of a model in several files.
#include "heed/train/run/tensor_files.h"

#include <map>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"

namespace heed {
namespace {

constexpr int64_t max_index_bytes = int64_t{64} << 20;
constexpr size_t max_weight_files = 1000;

/// Whether a name in the index is that of a safetensors file in the folder itself.
bool is_weight_file_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.front() != '.' && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

/// The names of the tensors of each file, by its name.
std::map<std::string, std::vector<std::string>> tensors_by_file(const Path& index) {
  const std::string name = index.string();
  const Json json = parse_json(io::read(index, max_index_bytes), name, {.values = 2 * max_tensors});
  const Json* map = json.is_object() ? json.find("weight_map") : nullptr;
  if (map == nullptr || !map->is_object())
    fail(Fault::data, name,
         ": there is no object weight_map, the file of each tensor. Save the model again.");
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [tensor, file] : map->members()) {
    if (!file.is_text() || !is_weight_file_name(file.text()))
      fail(Fault::data, name, ": weight_map says that ", shown(tensor), " is in ", shown(file.dump(), 80),
           ", which is no name of a .safetensors file in this folder. Save the model again.");
    out[file.text()].push_back(tensor);
    if (out.size() > max_weight_files)
      fail(Fault::data, name, ": weight_map names more than ", max_weight_files, " files.");
  }
  if (out.empty()) fail(Fault::data, name, ": weight_map names no tensor. Save the model again.");
  return out;
}

}  // namespace

TensorFiles::TensorFiles(SafeTensors file) : name(file.name()) { files.push_back(std::move(file)); }

TensorFiles TensorFiles::open(const Path& folder) {
  if (io::exists(folder / weights_file)) return SafeTensors::open(folder / weights_file);
  TensorFiles out;
  out.name = (folder / weights_index_file).string();
  const auto listed = tensors_by_file(folder / weights_index_file);
  for (const auto& [file, tensors] : listed) {
    if (!io::exists(folder / file))
      fail(Fault::file, "import: ", folder, " lacks ", shown(file), ", which ", weights_index_file,
           " names. Fetch all files of the model.");
    out.files.push_back(SafeTensors::open(folder / file));
    for (const std::string& tensor : tensors) {
      if (out.files.back().find(tensor) == nullptr)
        fail(Fault::data, out.name, ": weight_map says that ", shown(tensor), " is in ", shown(file),
             ", which lacks it. Fetch the files of one model.");
    }
  }
  for (const SafeTensors& file : out.files) {
    const std::string name = Path(file.name()).filename().string();
    if (file.entries().size() != listed.at(name).size())
      fail(Fault::data, out.name, ": weight_map has ", listed.at(name).size(), " tensors of ", shown(name),
           ", which has ", file.entries().size(), ". Fetch the files of one model.");
  }
  return out;
}

}  // namespace heed
