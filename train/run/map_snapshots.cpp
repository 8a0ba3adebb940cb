// Writes, reads and lists map snapshots: safetensors files with weights in f32, and with tokens and
// statistics as JSON in the metadata.
#include "heed/train/run/map_snapshots.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/safetensors.h"

namespace heed {
namespace {

constexpr std::string_view file_prefix = "step_", file_suffix = ".safetensors";

Path snapshot_file(const Path& run, int64_t step) {
  const std::string digits = formatted("%06lld", static_cast<long long>(step));
  return map_snapshots_folder(run) / text(file_prefix, digits, file_suffix);
}

Json tokens_json(const std::vector<std::string>& tokens) { return Json::List(tokens.begin(), tokens.end()); }

std::vector<std::string> tokens_of_json(const Json& json) {
  std::vector<std::string> out;
  for (const Json& token : json.list()) out.push_back(token.text());
  return out;
}

/// The name of a map's tensor: that of the map, and a number where an earlier map has the same name. `uses`
/// counts how often each name was used.
std::string tensor_name_of(const MapView& map, std::map<std::string, int>& uses) {
  const int number = ++uses[map.name];
  return number == 1 ? map.name : text(map.name, "#", number);
}

/// Metadata of a map: names, tokens, and the statistics of its heads, computed from the map before pooling.
Json map_json_of(const MapView& map, const std::string& tensor, const MapView& unpooled) {
  Json out = Json::object({{"tensor", Json(tensor)},
                           {"name", Json(map.name)},
                           {"kind", Json(map.kind)},
                           {"layer", Json(map.layer)},
                           {"queries", tokens_json(map.query_tokens)},
                           {"keys", tokens_json(map.key_tokens)}});
  Json heads = Json::List();
  for (const HeadStatistics& head : head_statistics(unpooled)) {
    const double induction = induction_score(unpooled, static_cast<int64_t>(heads.list().size()));
    heads.push(Json::List{head.entropy, head.uniform_entropy, head.confidence, head.diagonal, head.previous,
                          head.next, induction});
  }
  return out.set("heads", std::move(heads));
}

/// Reads the statistics of a head, in the order in which map_json_of() writes them.
HeadSnapshot head_of_json(const Json& json) {
  const Json::List& list = json.list();
  if (list.size() != 7) fail(Fault::data, "a head has ", list.size(), " statistics. It must have 7.");
  return {.entropy = list[0].real(),
          .uniform_entropy = list[1].real(),
          .confidence = list[2].real(),
          .diagonal = list[3].real(),
          .previous = list[4].real(),
          .next = list[5].real(),
          .induction = list[6].real()};
}

/// Reads the snapshot in a file. An error does not name the file.
MapSnapshot snapshot_in(const SafeTensors& file, int64_t step) {
  const auto found = file.metadata().find("maps");
  if (found == file.metadata().end()) fail(Fault::data, "it has no metadata 'maps'.");
  const Json json = parse_json(found->second, file.name());
  MapSnapshot out{.step = step,
                  .input = json.at("input").text(),
                  .caption = json.at("caption").text(),
                  .maps = {},
                  .heads = {}};
  for (const Json& map_json : json.at("maps").list()) {
    const TensorEntry& entry = file.at(map_json.at("tensor").text());
    if (entry.dtype != "f32" || entry.shape.size() != 3)
      fail(Fault::data, "tensor '", entry.name, "' is no map: f32 with three extents.");
    MapView map{.name = map_json.at("name").text(),
                .kind = map_json.at("kind").text(),
                .layer = map_json.at("layer").integer(),
                .heads = entry.shape[0],
                .queries = entry.shape[1],
                .keys = entry.shape[2],
                .weights = file.array(entry.name).values<float>(),
                .query_tokens = tokens_of_json(map_json.at("queries")),
                .key_tokens = tokens_of_json(map_json.at("keys"))};
    check(map);
    std::vector<HeadSnapshot> heads;
    for (const Json& head : map_json.at("heads").list()) heads.push_back(head_of_json(head));
    if (static_cast<int64_t>(heads.size()) != map.heads)
      fail(Fault::data, "map '", map.name, "' has ", map.heads, " heads and statistics of ", heads.size(),
           ".");
    out.maps.push_back(std::move(map));
    out.heads.push_back(std::move(heads));
  }
  if (out.maps.empty()) fail(Fault::data, "it has no map.");
  return out;
}

}  // namespace

double induction_score(const MapView& map, int64_t head) {
  if (map.queries != map.keys || map.query_tokens != map.key_tokens) return NAN;
  std::map<std::string, int64_t> latest_position;
  double sum = 0;
  int64_t rows = 0;
  for (int64_t query = 0; query < map.queries; ++query) {
    const std::string& token = map.query_tokens[static_cast<size_t>(query)];
    if (const auto earlier = latest_position.find(token); earlier != latest_position.end()) {
      sum += map.at(head, query, earlier->second + 1);
      ++rows;
    }
    latest_position[token] = query;
  }
  return rows > 0 ? sum / static_cast<double>(rows) : NAN;
}

int64_t snapshot_interval(int64_t step, int64_t every, int64_t max_snapshots) {
  if (every < 1) fail("map snapshots: every = ", every, ". It must be at least 1.");
  if (max_snapshots < 2) fail("map snapshots: max_snapshots = ", max_snapshots, ". It must be at least 2.");
  int64_t interval = every;
  while (step / interval + 1 > max_snapshots) interval *= 2;
  return interval;
}

Path map_snapshots_folder(const Path& run) { return run / "maps"; }

std::vector<int64_t> list_map_snapshots(const Path& run) {
  std::vector<int64_t> out;
  for (const Path& entry : io::list(map_snapshots_folder(run))) {
    const std::string name = entry.string();
    if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) continue;
    const std::string_view digits = std::string_view(name).substr(
        file_prefix.size(), name.size() - file_prefix.size() - file_suffix.size());
    if (const std::optional<int64_t> step = parsed_integer(digits); step && *step >= 0) out.push_back(*step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

int64_t write_map_snapshot(const Path& run, int64_t step, const std::string& input,
                           const std::string& caption, const std::vector<MapView>& maps,
                           int64_t max_snapshots) {
  if (maps.empty()) fail("maps through training: the attentions of this run have no maps.");
  for (const MapView& map : maps) check(map);
  const std::vector<MapView> pooled = pooled_within(maps, max_snapshot_bytes / max_snapshots);
  std::vector<TensorBytes> tensors;
  std::map<std::string, int> uses;
  Json list = Json::List();
  for (size_t i = 0; i < pooled.size(); ++i) {
    const MapView& map = pooled[i];
    const std::string name = tensor_name_of(map, uses);
    tensors.push_back(
        {name, "f32", {map.heads, map.queries, map.keys}, std::as_bytes(std::span(map.weights))});
    list.push(map_json_of(map, name, maps[i]));
  }
  const Json metadata = Json::object(
      {{"input", Json(input)}, {"caption", Json(caption)}, {"step", Json(step)}, {"maps", std::move(list)}});
  const std::string bytes = encode_safetensors(tensors, {{"maps", metadata.dump()}});
  io::make_directory(map_snapshots_folder(run));
  io::write_own(snapshot_file(run, step), bytes);
  return static_cast<int64_t>(bytes.size());
}

MapSnapshot read_map_snapshot(const Path& run, int64_t step) {
  const Path path = snapshot_file(run, step);
  const SafeTensors file = SafeTensors::read(path);
  if (const TensorEntry* bad = file.damaged())
    fail(Fault::data, path, ": tensor '", bad->name, "' is damaged: its checksum differs. Remove the file.");
  try {
    return snapshot_in(file, step);
  } catch (const Error& error) {
    fail(Fault::data, path, ": ", error.what(), " Remove the file.");
  }
}

void remove_map_snapshot(const Path& run, int64_t step) { io::remove_all(snapshot_file(run, step)); }

}  // namespace heed
