// Maps kept while training: the training is the same, a resumed run keeps the same, the folder is bounded.
#include "heed/train/loop/map_snapshot_callback.h"

#include "heed/core/parallel/thread_pool.h"
#include "heed/nn/linear.h"
#include "heed/tests/catch.h"
#include "heed/tests/scratch.h"
#include "heed/tests/train/small_run.h"
#include "heed/train/fit.h"
#include "heed/train/tasks/map_provider.h"

using namespace heed;

namespace {

Settings with_maps(const std::string& every, const std::string& maximum = "100", Settings more = {}) {
  more.insert(more.end(), {{"train.maps_every", every}, {"train.maps_keep", maximum}});
  return more;
}

/// All kept files as one text.
std::string kept_bytes(const Path& run) {
  std::string out;
  for (const Path& name : io::list(map_snapshots_folder(run)))
    out += text(name.string(), "\n", io::read(map_snapshots_folder(run) / name));
  return out;
}

}  // namespace

TEST_CASE("keep maps: training has the same bits with and without") {
  const Scratch scratch;
  train_session(scratch / "with", tiny(with_maps("1")));
  train_session(scratch / "without", tiny());
  check_same(scratch / "with", scratch / "without", 12);
  CHECK(list_map_snapshots(scratch / "with").size() == 13);
  CHECK(list_map_snapshots(scratch / "without").empty());
}

TEST_CASE("keep maps: every second one goes where there would be too many") {
  const Scratch scratch;
  train_session(scratch / "run", tiny(with_maps("1", "4")));
  CHECK(list_map_snapshots(scratch / "run") == std::vector<int64_t>{0, 4, 8, 12});
}

TEST_CASE("keep maps: a resumed run keeps what an uninterrupted one does") {
  const Scratch scratch;
  const int before = threads();
  train_session(scratch / "whole", tiny(with_maps("1", "5")));
  for (const int64_t at : {1, 8, 15}) {
    CAPTURE(at);
    const Path run = scratch / text("stopped", at);
    train_session(run, tiny(with_maps("1", "5")), at);
    set_threads(at % 2 == 0 ? 1 : 3);
    train_session(run, tiny(with_maps("1", "5")));
    CHECK((kept_bytes(run) == kept_bytes(scratch / "whole")));
  }
  set_threads(before);
  // From an earlier checkpoint: maps of later steps are of a session that is replaced.
  const Path again = scratch / "again";
  train_session(again, tiny(with_maps("1", "5", {{"train.keep_checkpoints", "9"}})));
  train_session(again, tiny(with_maps("1", "5", {{"train.keep_checkpoints", "9"}})), 1,
                "6");  // steps 7 and no more
  CHECK(list_map_snapshots(again) == std::vector<int64_t>{0, 4, 6});
  train_session(again, tiny(with_maps("1", "5", {{"train.keep_checkpoints", "9"}})));
  CHECK((kept_bytes(again) == kept_bytes(scratch / "whole")));
}

TEST_CASE("keep maps: the maps of a step are those of its checkpoint") {
  const Scratch scratch;
  Config config = tiny(with_maps("3", "100", {{"train.keep_checkpoints", "9"}}));
  train_session(scratch / "run", std::move(config));
  for (const int64_t step : {3, 6, 9, 12}) {
    const MapSnapshot kept = read_map_snapshot(scratch / "run", step);
    LoadedRun loaded = load_run(scratch / "run", {.checkpoint = std::to_string(step)});
    std::string caption;
    const std::vector<MapView> maps =
        map_provider(*loaded.config.task).maps(*loaded.model, kept.input, caption);
    REQUIRE(maps.size() == kept.maps.size());
    CHECK(caption == kept.caption);
    for (size_t i = 0; i < maps.size(); ++i) CHECK((maps[i].weights == kept.maps[i].weights));
  }
}

TEST_CASE("keep maps: a folder with maps of another input is refused") {
  const Scratch scratch;
  train_session(scratch / "run", tiny(with_maps("4")), 9);
  CHECK_THROWS_WITH(
      train_session(scratch / "run", tiny(with_maps("4", "100", {{"train.maps_of", "Anna reads."}}))),
      containing("another input") && containing("MapSnapshotCallback::Options::input"));
  CHECK_THROWS_WITH(tiny({{"train.maps_of", "Anna reads."}}), containing("--maps-every"));
}

TEST_CASE("keep maps: from fit() as a callback") {
  struct Net final : Module {
    explicit Net(Rng& rng) : layer(2, 2, rng) {}
    void fields(Fields& f) override { f("layer", layer); }
    Linear layer;
  };
  const Scratch scratch;
  Rng rng(1);
  Net net(rng);
  Tensor x(Shape{8, 2});
  fill_uniform(x, -1, 1, rng);
  const TensorDataset data({x, Tensor::of<int32_t>(std::vector<int32_t>(8, 1), Shape{8})});
  DataLoader loader(data, {.batch_size = 4});
  MapSnapshotCallback keep(
      scratch / "run", {.every = 2, .input = "x"}, [&net](Module&, std::string& caption) {
        caption = "weights as a map";
        MapView map{.name = "layer", .kind = "encoder self", .heads = 1, .queries = 2, .keys = 2};
        map.weights = net.layer.weight.to_host();
        map.query_tokens = map.key_tokens = {"a", "b"};
        return std::vector<MapView>{map};
      });
  FitOptions options{.steps = 6, .callbacks = {&keep}, .folder = scratch / "run", .quiet = true};
  fit(
      net, loader,
      [](Net& n, const Batch& batch, const ForwardContext&) {
        return cross_entropy(n.layer(batch[0]), batch[1]);
      },
      options);
  CHECK(list_map_snapshots(scratch / "run") == std::vector<int64_t>{0, 2, 4, 6});
  CHECK(keep.count() == 4);
  CHECK((read_map_snapshot(scratch / "run", 6).maps[0].weights == net.layer.weight.to_host()));
  CHECK_THROWS_AS(MapSnapshotCallback(scratch / "run", {.every = 0}, {}), Error);
}
