// map_view(): a recorded map of one sequence, with names.
#include "heed/train/tasks/map_provider.h"

#include "heed/nn/linear.h"
#include "heed/tests/catch.h"

using namespace heed;

TEST_CASE("map view: named fields choose sequence, layer, rows and columns") {
  Rng rng(1);
  Linear model(2, 2, rng);
  // Two sequences, one head, 2 queries, 3 keys: the weight is the number of its place.
  const MapRecorder::Map map{
      .module = &model, .weights = Tensor::from({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, Shape{2, 1, 2, 3})};
  const std::vector<std::string> rows{"a", "b"}, columns{"x", "y"};
  const MapViewOptions options{
      .kind = "cross", .layer = 4, .sequence = 1, .query_tokens = rows, .key_tokens = columns};
  const MapView view = map_view(model, map, options);
  CHECK(view.kind == "cross");
  CHECK(view.layer == 4);
  CHECK(view.heads == 1);
  CHECK(view.weights == std::vector<float>{6, 7, 9, 10});
  CHECK(view.query_tokens == rows);
  CHECK(view.key_tokens == columns);
  CHECK(map_view(model, map, "cross", 4, rows, columns, 1).weights == view.weights);
  CHECK(map_view(model, map, {.query_tokens = {"a"}, .key_tokens = {"x"}}).weights == std::vector<float>{0});
  CHECK_THROWS_WITH(map_view(model, map, {.sequence = 2}),
                    containing("map_view: sequence 2 of a batch of 2, counted from 0."));
  CHECK_THROWS_WITH(map_view(model, map, {.query_tokens = {"a", "b", "c"}}),
                    containing("map_view: 3 query tokens and 0 key tokens for a map [2, 1, 2, 3]."));
  MapRecorder recorder;
  recorder.maps.push_back(map);
  CHECK_THROWS_WITH(map_view(model, recorder, 0, {.sequence = 1}), containing("Pass recorder.maps[0]"));
}
