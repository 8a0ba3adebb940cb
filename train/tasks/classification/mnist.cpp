// MNIST digits: patches of images, a classifier, accuracy.
#include <algorithm>
#include <array>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/variant.h"
#include "heed/core/io/hash.h"
#include "heed/data/batching/shuffle.h"
#include "heed/data/formats/idx.h"
#include "heed/data/synthetic/digits.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/classification/classification_task.h"
#include "heed/train/tasks/find_data.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

struct MnistOptions {
  std::string path;
  int64_t num_examples = 20000, test_size = 2000;
  int64_t patch = 7;
  int64_t head = 0;
  Pool pool = Pool::mean;
  int64_t validation = 5000;
  int64_t shift = 0;
  void fields(Fields& f) {
    f("path", path, "folder of the MNIST idx files; empty: embedded digits");
    f("num_examples", num_examples, {10, 10'000'000}, "training images of the embedded digits");
    f("test_size", test_size, {10, 10'000'000}, "test images of the embedded digits");
    f("validation", validation, {1, max_integer},
      "training images held out to choose the best checkpoint, at most a tenth");
    f("shift", shift, {0, 27},
      "pixels that training images, of 28 x 28, are moved by at most, each way, anew in every epoch");
  }
  void model_fields(Fields& f) {
    f("patch", patch, {1, 28}, "side of a square patch; must divide 28");
    f("head", head, {0, max_width}, "hidden width of the classifying head; 0: none");
    f("pool", Choice(pool, {"mean", "first"}),
      "what is classified: the mean of all tokens, or a token put first");
  }
};

constexpr int64_t side = 28, num_pixels = side * side, num_digits = 10;

/// Shifts an image down and to the right by so many pixels; what enters at an edge is background.
void shift_image(const uint8_t* image, int64_t down, int64_t right, uint8_t* shifted) {
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const int64_t from_y = y - down, from_x = x - right;
      const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
      *shifted++ = inside ? image[from_y * side + from_x] : uint8_t{0};
    }
  }
}

class Mnist final : public ClassificationTask {
 public:
  void fields(Fields& f) override { options_.fields(f); }
  std::vector<std::pair<std::string, int64_t>> small_data() const override {
    return {{"num_examples", std::min<int64_t>(options_.num_examples, 1000)},
            {"validation", std::min<int64_t>(options_.validation, 50)},
            {"test_size", std::min<int64_t>(options_.test_size, 50)}};
  }
  void model_fields(Fields& f) override { options_.model_fields(f); }

  void load(const Config& config, const std::vector<NamedBytes>&,
            const std::function<void(const std::string&)>& log) override {
    if (side % options_.patch != 0)
      fail("model.patch = ", options_.patch, ". It must divide 28: 1, 2, 4, 7, 14 or 28.");
    check_batch_size(config, "images");
    set_options(config.train);
    if (options_.path.empty()) {
      train_ = digits(options_.num_examples, 1);
      test_ = digits(options_.test_size, 2);
      log("data        digits drawn by strokes of our own; real ones: --data FOLDER, or heed data get mnist");
    } else {
      const Path folder = find_data(options_.path);
      train_ = read_mnist(folder, false);
      test_ = read_mnist(folder, true);
      log(text("data        ", options_.path));
    }
    for (const LabelledImages* set : {&train_, &test_}) {
      if (set->images.rows != side || set->images.columns != side || set->images.count < 10) {
        fail(Fault::data, "mnist: ", set->images.count, " images of ", set->images.rows, " x ",
             set->images.columns, "; at least 10 of 28 x 28 are needed.");
      }
    }
    num_validation_ = std::min(options_.validation, train_.images.count / 10);
    const auto hash = [](const LabelledImages& set) {
      return sha256_hex(std::string_view(reinterpret_cast<const char*>(set.images.pixels.data()),
                                         set.images.pixels.size()));
    };
    metadata_ = {{"sha256 training images", hash(train_)}, {"sha256 test images", hash(test_)}};
    log(text("images      ", num_training(), " train, ", num_validation_, " validation, ", test_.images.count,
             " test"));
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<Classifier>(config.model,
                                        Classifier::Options{.features = options_.patch * options_.patch,
                                                            .classes = num_digits,
                                                            .pool = options_.pool,
                                                            .head_hidden = options_.head},
                                        attention_factory(config.attention.encoder), rng);
  }

  std::vector<std::pair<std::string, std::string>> metadata() const override { return metadata_; }

  // The last images of the file are held out for validation; the others are shuffled by (seed, epoch).
  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    order_ = shuffled(num_training(), seed_, static_cast<uint64_t>(epoch));
    return (static_cast<int64_t>(order_.size()) + batch_size_ - 1) / batch_size_;
  }

  Batch batch(int64_t position) const override { return tensors(train_, planned(position), options_.shift); }

  double weight(int64_t position) const override { return static_cast<double>(planned(position).size()); }

  std::vector<std::string> tensor_names() const override { return {"patches", "targets"}; }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    const ClassificationTally tally = score(model, Split::test, test_.images.count, num_digits);
    std::array<int64_t, num_digits> times{};
    for (const uint8_t label : test_.labels) ++times[label];
    const double commonest = static_cast<double>(*std::max_element(times.begin(), times.end())) /
                             static_cast<double>(test_.images.count);
    Evaluation out;
    out.scores = tally.scores();
    out.notes = {
        text(test_.images.count, " test images; always the commonest digit: ", picture::fixed(commonest, 4))};
    out.confusion =
        Confusion{.labels = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, .counts = tally.confusion()};
    return out;
  }

 private:
  int64_t num_training() const { return train_.images.count - num_validation_; }

  /// The images of batch number `position` of the planned epoch.
  std::span<const int64_t> planned(int64_t position) const {
    const auto begin = static_cast<size_t>(position * batch_size_);
    return std::span(order_).subspan(begin,
                                     std::min(static_cast<size_t>(batch_size_), order_.size() - begin));
  }

  const char* example_name() const override { return "test image"; }
  int64_t num_examples(Split split) const override {
    return split == Split::validation ? num_validation_ : test_.images.count;
  }
  Batch examples(Split split, std::span<const int64_t> numbers) const override {
    if (split == Split::test) return tensors(test_, numbers, 0);
    std::vector<int64_t> indices(numbers.begin(), numbers.end());
    for (int64_t& index : indices) index += num_training();
    return tensors(train_, indices, 0);
  }

  ExampleTokens tokens_of(int64_t number) const override {
    const auto label = static_cast<int64_t>(test_.labels[static_cast<size_t>(number)]);
    ExampleTokens out{.number = number, .caption = text("test image ", number, ", a ", label)};
    if (options_.pool == Pool::first) out.input.emplace_back("first");
    const int64_t across = side / options_.patch;
    for (int64_t i = 0; i < across * across; ++i) out.input.push_back(text(i / across, ",", i % across));
    return out;
  }
  std::shared_ptr<TokenPicture> picture(int64_t number) const override {
    const auto pixels = test_.images.pixels.begin() + number * num_pixels;
    auto out = std::make_shared<TokenPicture>();
    out->height = out->width = side;
    out->pixels.assign(pixels, pixels + num_pixels);
    out->patch = options_.patch;
    out->first = options_.pool == Pool::first ? 1 : 0;
    return out;
  }

  /// An image's shift in this epoch: a pure function of (seed, epoch, image).
  std::pair<int64_t, int64_t> drawn_shift(int64_t index, int64_t max_shift) const {
    const auto draw = [&](uint64_t axis) {
      const auto stream = static_cast<uint64_t>(epoch_) | uint64_t{1} << 40;  // distinct from plan()'s stream
      return counter_below(seed_, stream, 2 * static_cast<uint64_t>(index) + axis, 2 * max_shift + 1) -
             max_shift;
    };
    return {draw(0), draw(1)};
  }

  /// [0] patches [B, T, patch^2] in 0..1, [1] labels i32 [B]. Shifts each image by up to `max_shift` pixels.
  Batch tensors(const LabelledImages& set, std::span<const int64_t> indices, int64_t max_shift) const {
    const int64_t patch = options_.patch, across = side / patch, num_patches = across * across;
    const auto count = static_cast<int64_t>(indices.size());
    std::vector<float> values(static_cast<size_t>(count * num_pixels));
    std::vector<int32_t> labels;
    float* next = values.data();
    for (const int64_t index : indices) {
      const uint8_t* image = set.images.pixels.data() + index * num_pixels;
      std::array<uint8_t, num_pixels> shifted;
      if (max_shift > 0) {
        const auto [down, right] = drawn_shift(index, max_shift);
        shift_image(image, down, right, shifted.data());
        image = shifted.data();
      }
      for (int64_t i = 0; i < num_patches; ++i) {
        const uint8_t* corner = image + i / across * patch * side + i % across * patch;
        for (int64_t y = 0; y < patch; ++y) {
          for (int64_t x = 0; x < patch; ++x) *next++ = static_cast<float>(corner[y * side + x]) / 255.0f;
        }
      }
      labels.push_back(set.labels[static_cast<size_t>(index)]);
    }
    Batch batch;
    batch.tensors = {Tensor::of<float>(values, Shape{count, num_patches, patch * patch}),
                     Tensor::of<int32_t>(labels, Shape{count})};
    batch.weight = static_cast<double>(count);
    batch.tokens = count * num_patches;
    return batch;
  }

  MnistOptions options_;
  LabelledImages train_, test_;
  int64_t num_validation_ = 0, epoch_ = 0;
  std::vector<int64_t> order_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace

TaskEntry task::mnist() {
  return task_entry<Mnist>("mnist", "handwritten digits as patches: encoder, accuracy");
}

}  // namespace heed
