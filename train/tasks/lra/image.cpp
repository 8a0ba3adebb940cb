// Image of the Long Range Arena: grey CIFAR-10, read pixel by pixel.
#include "heed/data/formats/cifar.h"
#include "heed/data/synthetic/retrieval_documents.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t image_seed = 1;
constexpr int64_t image_side = 32;

class Image final : public LongTask {
  void more_fields(Fields& f) override {
    f("side", side_, {1, 32}, "pixels a side that the model reads; 32 or a divisor of it, by averaging");
    f("pixel_zero", Choice(zero_, {"token", "pad"}),
      "what a pixel of 0 is: a grey like others, or padding that is left out (mean_over = all: masked)");
  }

  Tokens tokens() const override {
    return {.vocabulary = 256, .fixed = true, .drop_zeros = zero_ == PixelZero::pad};
  }
  std::vector<std::string> classes() const override {
    if (options_.path.empty()) return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    return {cifar_classes.begin(), cifar_classes.end()};
  }

  void check(const Config&) const override { check_side(image_side, side_); }

  LongSplits make(const Log& log) const override {
    log("data        digits on grey ground, drawn here; the benchmark's: --data FOLDER of CIFAR-10's binary "
        "files, or heed data get cifar10");
    return cut(
        shrunk(grounded_digits(options_.num_examples + options_.validation + options_.test_size, image_seed),
               image_side, side_));
  }

  LongSplits read(const Path& path, const Log&) const override {
    LongSplits splits{shrunk(read_cifar(path, false), image_side, side_),
                      {},
                      shrunk(read_cifar(path, true), image_side, side_)};
    hold_out(splits, options_.validation, false);  // the file's last ones, as in the benchmark
    return splits;
  }

  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override {
    return {{"majority", majority(train_set, test_set)},
            {"histogram of pixels", byte_runs(train_set, test_set, 1, true)}};
  }

  int64_t picture_side() const override { return side_; }

  std::string token_name(uint8_t, int64_t place) const override {
    return text(place / side_, ",", place % side_);
  }

  enum class PixelZero { token, pad } zero_ = PixelZero::token;
  int64_t side_ = image_side;
};

}  // namespace

TaskEntry task::lra_image() {
  return {"lra-image", "Long Range Arena: grey images pixel by pixel, ten classes, 1,024 tokens",
          []() -> std::unique_ptr<Task> { return std::make_unique<Image>(); }};
}

}  // namespace heed
