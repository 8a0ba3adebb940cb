// Maps in files: written and read back, of other programs, and damaged ones.
#include "heed/train/inspect/stored_maps.h"

#include <cmath>

#include "heed/core/io/files.h"
#include "heed/core/io/npy.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/train/inspect/map_writer.h"

using namespace heed;

namespace {

MapView made(const std::string& name, int64_t layer, int64_t queries, int64_t keys) {
  MapView out{
      .name = name, .kind = "encoder self", .layer = layer, .heads = 2, .queries = queries, .keys = keys};
  for (int64_t i = 0; i < 2 * queries * keys; ++i) out.weights.push_back(static_cast<float>(i) / 16);
  for (int64_t i = 0; i < queries; ++i) out.query_tokens.push_back("q" + std::to_string(i));
  for (int64_t i = 0; i < keys; ++i) out.key_tokens.push_back("k\"" + std::to_string(i));
  return out;
}

std::vector<MapView> all_in(const Path& path) {
  std::vector<MapView> out;
  visit_stored_maps(path, [&](const MapView& map) { out.push_back(map); });
  return out;
}

}  // namespace

TEST_CASE("stored maps: a folder gives back what was written into it, in either format") {
  for (const MapFormat format : {MapFormat::safetensors, MapFormat::npy}) {
    const Scratch scratch;
    const Path folder = scratch / "maps";
    const std::vector<MapView> maps{made("encoder.blocks.0.attention", 0, 3, 3),
                                    made("decoder.blocks.1.cross", 1, 2, 3)};
    MapWriter writer(folder, format, Json::object({{"run", "runs/x"}, {"checkpoint", 7}}));
    writer.add({.number = 4, .caption = "a \"b\"", .maps = maps});
    writer.add({.number = 12, .caption = "c", .maps = {maps[0]}});
    CHECK_FALSE(io::exists(folder / "manifest.json"));  // every few seconds, and at the end
    writer.finish(true);
    const std::vector<MapView> read = all_in(folder);
    REQUIRE(read.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      const MapView& wanted = maps[i % 2];
      CHECK(read[i].name == wanted.name);
      CHECK(read[i].kind == wanted.kind);
      CHECK(read[i].layer == wanted.layer);
      CHECK(read[i].weights == wanted.weights);
      CHECK(read[i].query_tokens == wanted.query_tokens);
      CHECK(read[i].key_tokens == wanted.key_tokens);
    }
    const Json manifest = parse_json(io::read(folder / "manifest.json"), "manifest.json");
    CHECK(manifest.at("run").text() == "runs/x");
    CHECK(manifest.at("complete").boolean());
    CHECK(manifest.at("count").integer() == 2);
    CHECK(manifest.at("examples").list()[1].at("number").integer() == 12);
    CHECK(manifest.at("examples").list()[0].at("maps").list()[1].at("shape").list()[2].integer() == 3);
    CHECK_THROWS_WITH(MapWriter(folder, format, Json::object()), containing("holds maps or a run already"));
  }
}

TEST_CASE("stored maps: arrays of other programs, and what is none") {
  const Scratch scratch;
  write_npy(scratch / "one.npy", Array::of<double>({2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6}));
  const std::vector<MapView> one = all_in(scratch / "one.npy");
  REQUIRE(one.size() == 1);
  CHECK(one[0].name == "one");
  CHECK(one[0].kind == "attention");
  CHECK(one[0].heads == 1);
  CHECK(one[0].at(0, 1, 2) == 6);
  CHECK(one[0].key_tokens.size() == 3);
  write_npy(scratch / "flat.npy", Array::of<float>({4}, std::vector<float>{1, 2, 3, 4}));
  CHECK_THROWS_WITH(all_in(scratch / "flat.npy"), containing("f32 [4]") && containing("no attention map"));
  write_npy(scratch / "ids.npy", Array::of<int32_t>({1, 1, 1}, std::vector<int32_t>{1}));
  CHECK_THROWS_WITH(all_in(scratch / "ids.npy"), containing("i32 [1, 1, 1]"));
  write_npy(scratch / "nan.npy", Array::of<float>({1, 1, 1}, std::vector<float>{NAN}));
  CHECK_THROWS_WITH(all_in(scratch / "nan.npy"), containing("not finite"));
  CHECK_THROWS_WITH(all_in(scratch / "nowhere"), containing("holds no maps"));
  io::make_directories(scratch / "run");
  io::write(scratch / "run" / "manifest.json", "{}");
  CHECK_THROWS_WITH(all_in(scratch / "run"), containing("lists no examples"));
}

TEST_CASE("stored maps: a manifest that points elsewhere or at nothing is refused") {
  const Scratch scratch;
  const Path folder = scratch / "maps";
  MapWriter writer(folder, MapFormat::npy, Json::object());
  writer.add({.number = 0, .caption = "", .maps = {made("encoder.blocks.0.attention", 0, 2, 2)}});
  writer.finish(true);
  const std::string manifest = io::read(folder / "manifest.json");
  const auto with = [&](const std::string& from, const std::string& into) {
    std::string changed = manifest;
    changed.replace(changed.find(from), from.size(), into);
    io::write(folder / "manifest.json", changed);
    return folder;
  };
  CHECK_THROWS_WITH(all_in(with("000000-0.npy", "../0.npy")), containing("is not a name"));
  CHECK_THROWS_WITH(all_in(with("\"key_tokens\": 1", "\"key_tokens\": 9")), containing("no token list 9"));
  CHECK_THROWS_WITH(all_in(with("000000-0.npy", "000001-0.npy")), containing("000001-0.npy"));
}
