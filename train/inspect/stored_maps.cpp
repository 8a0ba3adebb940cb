// Reads attention maps from .npy and safetensors files, and from the folders of `heed maps`.
#include "heed/train/inspect/stored_maps.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/safetensors.h"
#include "heed/train/inspect/map_source.h"

namespace heed {
namespace {

/// The kind of the attention whose map has this name; "attention" where the name is not that of a module.
std::string kind_of(const std::string& name) {
  const bool is_module = name.starts_with("encoder") || name.starts_with("decoder");
  return is_module ? place_of(name).kind : "attention";
}

/// The map in an array, with empty tokens. `file`: the array's file, for errors.
MapView map_of(const Array& array, const std::string& name, const std::string& file) {
  std::vector<int64_t> shape = array.shape;
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  const std::string extents =
      picture::joined(array.shape, ", ", [](int64_t extent) { return std::to_string(extent); });
  if (shape.size() != 3 || (array.dtype != "f32" && array.dtype != "f64")) {
    fail(Fault::data, file, " holds ", array.dtype, " [", extents,
         "], which is no attention map. It must be f32 or f64 [heads, queries, keys], or [queries, keys].");
  }
  // An extent of 0 allows any other extent in a file that is no larger than its header.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    fail(Fault::data, file, ": the map ", name, " [", extents, "] has no weights. No extent may be 0.");
  MapView out{.name = name, .kind = kind_of(name)};
  out.heads = shape[0];
  out.queries = shape[1];
  out.keys = shape[2];
  if (array.dtype == "f32") {
    out.weights = array.values<float>();
  } else {
    const std::vector<double> values = array.values<double>();
    out.weights.assign(values.begin(), values.end());
  }
  if (!std::all_of(out.weights.begin(), out.weights.end(), [](float x) { return std::isfinite(x); }))
    fail(Fault::data, file, ": a weight of ", name, " is not finite.");
  out.query_tokens.assign(static_cast<size_t>(out.queries), "");
  out.key_tokens.assign(static_cast<size_t>(out.keys), "");
  return out;
}

std::vector<std::string> tokens_of(const Json& list) {
  std::vector<std::string> out;
  for (const Json& token : list.list()) out.push_back(token.text());
  return out;
}

/// Calls `take` with the maps of one example in a folder of `heed maps`. `example`: its entry in the
/// manifest.
void visit_example(const Path& folder, const Json& example, const std::function<void(const MapView&)>& take) {
  const std::string manifest = (folder / "manifest.json").string();
  std::vector<std::vector<std::string>> lists;
  for (const Json& list : example.at("tokens").list()) lists.push_back(tokens_of(list));
  const auto tokens_at = [&](const Json& entry) {
    const int64_t index = entry.integer();
    if (index < 0 || index >= static_cast<int64_t>(lists.size()))
      fail(Fault::data, manifest, ": there is no token list ", index, ".");
    return lists[static_cast<size_t>(index)];
  };
  std::optional<SafeTensors> open_file;  // several maps lie in one file
  for (const Json& entry : example.at("maps").list()) {
    const std::string name = entry.at("name").text(), file = entry.at("file").text();
    if (Path(file).filename() != Path(file))
      fail(Fault::data, manifest, ": file '", shown(file), "' is not a name. Maps lie beside the manifest.");
    const Path path = folder / file;
    const bool is_npy = path.extension() == ".npy";
    if (!is_npy && (!open_file || open_file->name() != path.string())) open_file = SafeTensors::read(path);
    MapView map = map_of(is_npy ? read_npy(path) : open_file->array(name), name, path.string());
    map.kind = entry.at("kind").text();
    map.layer = entry.at("layer").integer();
    map.query_tokens = tokens_at(entry.at("query_tokens"));
    map.key_tokens = tokens_at(entry.at("key_tokens"));
    check(map);
    take(map);
  }
}

}  // namespace

void visit_stored_maps(const Path& path, const std::function<void(const MapView&)>& take) {
  const std::string ending = path.extension().string();
  if (ending == ".npy") return take(map_of(read_npy(path), path.stem().string(), path.string()));
  if (ending == ".safetensors") {
    const SafeTensors tensors = SafeTensors::read(path);
    for (const TensorEntry& entry : tensors.entries())
      take(map_of(tensors.array(entry.name), entry.name, path.string()));
    return;
  }
  const Path manifest = path / "manifest.json";
  if (!io::exists(manifest)) {
    fail(Fault::file, path.string(),
         " holds no maps. Give a .npy or .safetensors file, a folder that heed maps has written, or a run.");
  }
  const Json read = parse_json(io::read(manifest), manifest.string());
  if (read.find("examples") == nullptr)
    fail(Fault::data, manifest.string(), " lists no examples, so it is not of heed maps.");
  for (const Json& example : read.at("examples").list()) visit_example(path, example, take);
}

}  // namespace heed
