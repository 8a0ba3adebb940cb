// Pathfinder data: generated images or the benchmark's folders.
#include "heed/train/tasks/lra/pathfinder_images.h"

#include "heed/core/io/files.h"
#include "heed/data/batching/shuffle.h"
#include "heed/data/synthetic/pathfinder.h"
#include "heed/train/tasks/lra/lra.h"

namespace heed {
namespace {

constexpr uint64_t pathfinder_seed = 1, splitting = 0x70617468;

class Pathfinder final : public LongTask {
 public:
  explicit Pathfinder(int64_t resolution) : resolution_(resolution), side_(resolution) {}

 private:
  void more_fields(Fields& f) override {
    f("resolution", resolution_, {32, 256}, "pixels a side of the images: 32, 64, 128 or 256");
    f("side", side_, {1, 256},
      "pixels a side that the model reads; the resolution or a divisor of it, by averaging");
    f("contour", contour_, {2, 14},
      "dashes of each of the two curves, whose ends the discs are on; the benchmark scores 14");
    f("pixel_zero", Choice(zero_, {"token", "pad"}),
      "what a pixel of 0, the ground, is: a grey like others, or padding that is left out (mean_over = all: "
      "masked)");
  }

  void check(const Config&) const override {
    pathfinder_options(resolution_);
    check_side(resolution_, side_);
  }

  Tokens tokens() const override {
    return {.vocabulary = 256, .fixed = true, .drop_zeros = zero_ == PixelZero::pad};
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
    const bool keep = count * resolution_ * resolution_ > (int64_t{8} << 20);
    return cut(shrunk(
        keep ? cached(recipe, draw, [&](const std::string& line) { log("cache       " + line); }) : draw(),
        resolution_, side_));
  }

  LongSplits read(const Path& path, const Log& log) const override {
    const Path inner = path / set_name();
    int64_t left_out = 0;
    const Path folder = io::is_directory(inner) ? inner : path;
    const Sequences all = shrunk(read_pathfinder(folder, resolution_, &left_out), resolution_, side_);
    if (left_out > 0) log(text("left out    ", left_out, " images whose file is empty"));
    // 80, 10 and 10 percent after one shuffle, as in the PyTorch ports.
    const Sequences mixed = all.pick(shuffled(all.count(), splitting, 0));
    const int64_t one = mixed.count() * 8 / 10, two = mixed.count() * 9 / 10;
    return {mixed.slice(0, one), mixed.slice(one, two), mixed.slice(two, mixed.count())};
  }

  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override {
    return {{"majority", majority(train_set, test_set)},
            {"histogram of pixels", byte_runs(train_set, test_set, 1, true)}};
  }

  /// The benchmark's folder of images with such curves.
  std::string set_name() const { return text("curv_contour_length_", contour_); }

  int64_t picture_side() const override { return side_; }

  std::string token_name(uint8_t, int64_t place) const override {
    return text(place / side_, ",", place % side_);
  }

  enum class PixelZero { token, pad } zero_ = PixelZero::token;
  int64_t resolution_, side_, contour_ = 14;
};

}  // namespace

std::unique_ptr<Task> pathfinder_task(int64_t resolution) { return std::make_unique<Pathfinder>(resolution); }

}  // namespace heed
