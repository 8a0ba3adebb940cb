// Pathfinder and Path-X of the Long Range Arena: are two discs on one dashed curve?
#include "heed/data/synthetic/pathfinder.h"
#include "heed/core/io/files.h"
#include "heed/data/batching/shuffle.h"
#include "heed/train/tasks/lra/pictures.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t pathfinder_seed = 1, split_seed = 0x70617468;

class Pathfinder final : public PictureTask {
 public:
  /// Greys as measured on 20,000 generated images, 32 pixels a side, curves of 14 dashes: 27.8, 58.0.
  explicit Pathfinder(int64_t resolution) : PictureTask(resolution, {.mean = 28, .deviation = 58}) {}

 private:
  void more_fields(Fields& f) override {
    f("resolution", resolution_, {32, 256}, "pixels a side of the images: 32, 64, 128 or 256");
    PictureTask::more_fields(f);
    f("contour", contour_, {2, 14},
      "dashes of each of the two curves, whose ends the discs are on; the benchmark scores 14");
  }

  void check_more(const Config& config) const override {
    pathfinder_options(resolution_);
    PictureTask::check_more(config);
  }

  std::vector<std::string> classes() const override { return {"two curves", "one curve"}; }

  LongSplits make(const Log& log) const override {
    const int64_t count = options_.num_examples + options_.validation + options_.test_size;
    log(text(
        "data        dashed curves by the benchmark's generator, drawn here; its own images: --data FOLDER "
        "that holds imgs and metadata, as pathfinder",
        resolution_, "/", set_name()));
    PathfinderOptions options = pathfinder_options(resolution_);
    options.contour = contour_;
    const auto draw = [&] { return pathfinder(count, pathfinder_seed, options); };
    const std::string recipe = text("pathfinder 1: ", count, " of seed ", pathfinder_seed, ", ", resolution_,
                                    " pixels a side, ", contour_, " dashes");
    const bool is_large = count * resolution_ * resolution_ > (int64_t{8} << 20);
    return cut(
        as_read(is_large ? cached(recipe, draw, [&](const std::string& line) { log("cache       " + line); })
                         : draw()));
  }

  LongSplits read(const Path& path, const Log& log) const override {
    const Path inner = path / set_name();
    int64_t num_skipped = 0;
    const Path folder = io::is_directory(inner) ? inner : path;
    const Sequences all = as_read(read_pathfinder(folder, resolution_, &num_skipped));
    if (num_skipped > 0) log(text("left out    ", num_skipped, " images whose file is empty"));
    // The PyTorch ports of the benchmark split so: 80, 10 and 10 percent after one shuffle.
    const Sequences mixed = all.pick(shuffled(all.count(), split_seed, 0));
    const int64_t train_end = mixed.count() * 8 / 10, validation_end = mixed.count() * 9 / 10;
    return {.train = mixed.slice(0, train_end),
            .validation = mixed.slice(train_end, validation_end),
            .test = mixed.slice(validation_end, mixed.count())};
  }

  /// The benchmark's folder of images with such curves.
  std::string set_name() const { return text("curv_contour_length_", contour_); }

  int64_t contour_ = 14;
};

}  // namespace

TaskEntry task::lra_pathfinder() {
  return {"lra-pathfinder", "Long Range Arena: are two discs on one curve? 32 x 32 pixels, 1,024 tokens",
          []() -> std::unique_ptr<Task> { return std::make_unique<Pathfinder>(32); }};
}

TaskEntry task::lra_pathx() {
  return {"lra-pathx", "Long Range Arena: are two discs on one curve? 128 x 128 pixels, 16,384 tokens",
          []() -> std::unique_ptr<Task> { return std::make_unique<Pathfinder>(128); }};
}

}  // namespace heed
