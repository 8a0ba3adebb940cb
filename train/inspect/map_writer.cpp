// Writes the maps of examples and the manifest that lists them.
#include "heed/train/inspect/map_writer.h"

#include <algorithm>

#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/safetensors.h"
#include "heed/train/progress/progress.h"

namespace heed {
namespace {

constexpr double seconds_between_manifests = 5;

Json list_of_texts(const std::vector<std::string>& texts) { return Json::List(texts.begin(), texts.end()); }

/// The index of `tokens` among the lists, to which they are added where they are missing.
int64_t index_of(std::vector<std::vector<std::string>>& lists, const std::vector<std::string>& tokens) {
  const auto found = std::find(lists.begin(), lists.end(), tokens);
  if (found != lists.end()) return found - lists.begin();
  lists.push_back(tokens);
  return static_cast<int64_t>(lists.size()) - 1;
}

}  // namespace

MapWriter::MapWriter(Path folder, MapFormat format, Json metadata)
    : folder_(std::move(folder)),
      format_(format),
      metadata_(std::move(metadata)),
      manifest_time_(seconds_now()) {
  if (io::exists(folder_ / "manifest.json")) {
    fail("maps: ", folder_.string(),
         " holds maps or a run already: it has a manifest.json. Give another --out, or remove it.");
  }
  io::make_directories(folder_);
}

void MapWriter::add(const MappedExample& example) {
  const std::string base = formatted("%06lld", static_cast<long long>(example.number));
  std::vector<std::vector<std::string>> lists;
  std::vector<TensorBytes> tensors;
  Json maps = Json::List();
  for (size_t i = 0; i < example.maps.size(); ++i) {
    const MapView& map = example.maps[i];
    check(map);
    const std::vector<int64_t> shape{map.heads, map.queries, map.keys};
    const std::string file = format_ == MapFormat::npy ? text(base, "-", i, ".npy") : base + ".safetensors";
    if (format_ == MapFormat::npy)
      write_npy(folder_ / file, Array::of<float>(shape, map.weights));
    else
      tensors.push_back({map.name, "f32", shape, std::as_bytes(std::span(map.weights))});
    maps.push(Json::object({{"name", map.name},
                            {"kind", map.kind},
                            {"layer", map.layer},
                            {"shape", Json(Json::List{map.heads, map.queries, map.keys})},
                            {"file", file},
                            {"query_tokens", index_of(lists, map.query_tokens)},
                            {"key_tokens", index_of(lists, map.key_tokens)}}));
  }
  if (!tensors.empty()) write_safetensors(folder_ / (base + ".safetensors"), tensors);
  Json tokens = Json::List();
  for (const std::vector<std::string>& list : lists) tokens.push(list_of_texts(list));
  const Json entry = Json::object(
      {{"number", example.number}, {"caption", example.caption}, {"tokens", tokens}, {"maps", maps}});
  examples_json_ += (count_ == 0 ? "\n" : ",\n") + entry.dump();
  ++count_;
  if (seconds_now() - manifest_time_ >= seconds_between_manifests) write_manifest(/*complete=*/false);
}

void MapWriter::finish(bool complete) { write_manifest(complete); }

void MapWriter::write_manifest(bool complete) {
  Json manifest = metadata_;
  manifest.set("complete", complete);
  manifest.set("count", count_);
  if (!left_out_.empty()) manifest.set("left_out", list_of_texts(left_out_));
  std::string out = manifest.dump();
  out.pop_back();  // the closing brace: the examples, which are text already, are one more member
  io::write(folder_ / "manifest.json", out + ",\"examples\":[" + examples_json_ + "\n]}\n");
  manifest_time_ = seconds_now();
}

}  // namespace heed
