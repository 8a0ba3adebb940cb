// Maps kept in a run folder: what is written comes back, bounded, and damage is told.
#include "heed/train/run/map_snapshots.h"

#include <cmath>

#include "heed/core/io/files.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"

using namespace heed;

namespace {

MapView kept_map(int64_t heads, int64_t tokens, const std::string& name = "decoder.0.attention") {
  MapView map{.name = name, .kind = "decoder self", .heads = heads, .queries = tokens, .keys = tokens};
  for (int64_t i = 0; i < tokens; ++i) map.query_tokens.push_back(text("t", i % 7));
  map.key_tokens = map.query_tokens;
  for (int64_t i = 0; i < heads * tokens * tokens; ++i)
    map.weights.push_back(1 / static_cast<float>(3 + i % 11));
  return map;
}

}  // namespace

TEST_CASE("kept maps: the interval doubles where more steps than the bound would be kept") {
  CHECK(snapshot_interval(0, 10, 4) == 10);
  CHECK(snapshot_interval(39, 10, 4) == 10);  // 0 10 20 30
  CHECK(snapshot_interval(40, 10, 4) == 20);  // 0 20 40
  CHECK(snapshot_interval(79, 10, 4) == 20);
  CHECK(snapshot_interval(80, 10, 4) == 40);
  CHECK(snapshot_interval(1'000'000, 1, 2) > 1'000'000 / 2);
  CHECK_THROWS_AS(snapshot_interval(1, 0, 4), Error);
  CHECK_THROWS_AS(snapshot_interval(1, 1, 1), Error);
}

TEST_CASE("kept maps: weights come back bit for bit, with tokens and statistics") {
  const Scratch scratch;
  std::vector<MapView> maps{kept_map(2, 9), kept_map(3, 9)};  // two of one name
  maps[0].weights[5] = std::nextafter(0.1F, 1.0F);
  write_map_snapshot(scratch.path(), 400, "in", "in -> out", maps, 100);
  write_map_snapshot(scratch.path(), 0, "in", "", maps, 100);
  CHECK(list_map_snapshots(scratch.path()) == std::vector<int64_t>{0, 400});
  const MapSnapshot back = read_map_snapshot(scratch.path(), 400);
  CHECK(back.step == 400);
  CHECK(back.input == "in");
  CHECK(back.caption == "in -> out");
  REQUIRE(back.maps.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(back.maps[i].weights == maps[i].weights);
    CHECK(back.maps[i].query_tokens == maps[i].query_tokens);
    const auto statistics = head_statistics(maps[i]);
    REQUIRE(back.heads[i].size() == statistics.size());
    CHECK(back.heads[i][1].entropy == statistics[1].entropy);
    CHECK(back.heads[i][1].previous == statistics[1].previous);
  }
  remove_map_snapshot(scratch.path(), 0);
  CHECK(list_map_snapshots(scratch.path()) == std::vector<int64_t>{400});
}

TEST_CASE("kept maps: long inputs are pooled, so that all steps stay within the bound") {
  const Scratch scratch;
  const std::vector<MapView> maps{kept_map(4, 300)};
  const int64_t bytes = write_map_snapshot(scratch.path(), 1, "", "", maps, 100);
  const MapView small = read_map_snapshot(scratch.path(), 1).maps[0];
  CHECK(small.queries < 300);
  CHECK(static_cast<int64_t>(small.weights.size() * sizeof(float)) <= max_snapshot_bytes / 100);
  CHECK(bytes < max_snapshot_bytes / 100 + 8000);
  CHECK(small.weights == pooled(maps[0], small.queries).weights);
  CHECK(read_map_snapshot(scratch.path(), 1).heads[0][0].entropy == head_statistics(maps[0])[0].entropy);
}

TEST_CASE("kept maps: a damaged file is an error that names it") {
  const Scratch scratch;
  write_map_snapshot(scratch.path(), 7, "", "", {kept_map(1, 4)}, 100);
  const Path file = map_snapshots_folder(scratch.path()) / "step_000007.safetensors";
  std::string bytes = io::read(file);
  bytes[bytes.size() - 3] ^= 8;
  io::write(file, bytes);
  CHECK_THROWS_WITH(read_map_snapshot(scratch.path(), 7), containing("step_000007"));
  io::write(file, bytes.substr(0, 20));
  CHECK_THROWS_AS(read_map_snapshot(scratch.path(), 7), Error);
  CHECK_THROWS_AS(read_map_snapshot(scratch.path(), 8), Error);
}

TEST_CASE("induction score: the weight behind the last occurrence of the same token") {
  MapView map = kept_map(1, 4);
  map.query_tokens = map.key_tokens = {"a", "b", "a", "b"};
  map.weights.assign(16, 0);
  map.weights[2 * 4 + 1] = 0.75F;  // the second a looks at the b behind the first
  map.weights[3 * 4 + 2] = 0.25F;
  CHECK(induction_score(map, 0) == Approx(0.5));
  map.query_tokens = map.key_tokens = {"a", "b", "c", "d"};
  CHECK(std::isnan(induction_score(map, 0)));
}
