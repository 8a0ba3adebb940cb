// Image of the Long Range Arena: grey CIFAR-10, read pixel by pixel.
#include "heed/data/formats/cifar.h"
#include "heed/data/synthetic/digits.h"
#include "heed/train/tasks/lra/pictures.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t image_seed = 1;
constexpr int64_t image_side = 32;

class Image final : public PictureTask {
 public:
  /// Greys as measured on 4,000 images of CIFAR-10: 122.3 and 61.2.
  Image() : PictureTask(image_side, {.mean = 122, .deviation = 61}) {}

 private:
  std::vector<std::string> classes() const override {
    if (options_.path.empty()) return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    return {cifar_classes.begin(), cifar_classes.end()};
  }

  LongSplits make(const Log& log) const override {
    log("data        digits on grey ground, drawn here; the benchmark's: --data FOLDER of CIFAR-10's binary "
        "files, or heed data get cifar10");
    return cut(as_read(
        digits_on_background(options_.num_examples + options_.validation + options_.test_size, image_seed)));
  }

  LongSplits read(const Path& path, const Log&) const override {
    LongSplits splits{as_read(read_cifar(path, false)), {}, as_read(read_cifar(path, true))};
    hold_out(splits, options_.validation, /*shuffle=*/false);  // the last ones, which the benchmark holds out
    return splits;
  }
};

}  // namespace

TaskEntry task::lra_image() {
  return task_entry<Image>("lra-image",
                           "Long Range Arena: grey images pixel by pixel, ten classes, 1,024 tokens");
}

}  // namespace heed
