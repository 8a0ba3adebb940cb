// MNIST digits: patches of images, a classifier, accuracy.
#include <algorithm>
#include <array>
#include <charconv>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/inspect/text_escapes.h"
#include "heed/attention/variant.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/hash.h"
#include "heed/data/batching/shuffle.h"
#include "heed/data/formats/idx.h"
#include "heed/data/synthetic/digits.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

struct Options {
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

/// Shifts a 28 x 28 image down and to the right by so many pixels.
void move_image(const uint8_t* from, int64_t down, int64_t right, uint8_t* to) {
  for (int64_t y = 0; y < 28; ++y) {
    for (int64_t x = 0; x < 28; ++x) {
      const int64_t v = y - down, u = x - right;
      *to++ = v >= 0 && v < 28 && u >= 0 && u < 28 ? from[v * 28 + u] : uint8_t{0};
    }
  }
}

class Mnist final : public Task {
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
    if (28 % options_.patch != 0)
      fail("model.patch = ", options_.patch, ". It must divide 28: 1, 2, 4, 7, 14 or 28.");
    if (config.train.batch_size < 1)
      fail("train.batch_size = ", config.train.batch_size,
           ". The task mnist counts images: give at least 1.");
    batch_ = config.train.batch_size;
    seed_ = static_cast<uint64_t>(config.train.seed);
    smoothing_ = config.train.label_smoothing;
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
      if (set->images.rows != 28 || set->images.columns != 28 || set->images.count < 10) {
        fail(Fault::data, "mnist: ", set->images.count, " images of ", set->images.rows, " x ",
             set->images.columns, "; at least 10 of 28 x 28 are needed.");
      }
    }
    held_ = std::min(options_.validation, train_.images.count / 10);
    const auto hash = [](const LabelledImages& set) {
      return sha256_hex(std::string_view(reinterpret_cast<const char*>(set.images.pixels.data()),
                                         set.images.pixels.size()));
    };
    metadata_ = {{"sha256 training images", hash(train_)}, {"sha256 test images", hash(test_)}};
    log(text("images      ", train_.images.count - held_, " train, ", held_, " validation, ",
             test_.images.count, " test"));
  }

  void load_artifacts(const Config& config, const std::vector<NamedBytes>& artifacts) override {
    load(config, artifacts, [](const std::string&) {});
  }

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<Classifier>(config.model,
                                        Classifier::Options{.features = options_.patch * options_.patch,
                                                            .classes = 10,
                                                            .pool = options_.pool,
                                                            .head_hidden = options_.head},
                                        attention_factory(config.attention.encoder), rng);
  }

  std::vector<NamedBytes> artifacts() const override { return {}; }
  std::vector<std::pair<std::string, std::string>> metadata() const override { return metadata_; }

  // The last images of the file are held out; the others are shuffled by (seed, epoch).
  int64_t plan(int64_t epoch) override {
    epoch_ = epoch;
    order_ = shuffled(train_.images.count - held_, seed_, static_cast<uint64_t>(epoch));
    return (static_cast<int64_t>(order_.size()) + batch_ - 1) / batch_;
  }

  Batch batch(int64_t position) const override {
    const int64_t begin = position * batch_;
    const int64_t end = std::min(begin + batch_, static_cast<int64_t>(order_.size()));
    return tensors(train_, {order_.begin() + begin, order_.begin() + end}, options_.shift);
  }

  double weight(int64_t position) const override {
    const auto images = static_cast<int64_t>(order_.size());
    return static_cast<double>(std::min(batch_, images - position * batch_));
  }

  std::vector<std::string> tensor_names() const override { return {"patches", "targets"}; }

  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const override {
    const Tensor logits = dynamic_cast<Classifier&>(model)(batch.tensors[0], {}, context);
    resolve_auxiliary_losses(context.losses, logits, batch.tensors[1]);
    return cross_entropy(logits, batch.tensors[1], context.training() ? smoothing_ : 0);
  }

  Scores validate(Module& model) const override {
    const Result result = classify(model, train_, train_.images.count - held_, train_.images.count);
    return {.list = {{"accuracy", result.accuracy}, {"loss", result.loss}}, .lower_is_better = false};
  }

  std::vector<ValidationPart> validation_cost(Module& model) const override {
    const int64_t end = train_.images.count, some = std::min(held_, scored_at_once);
    return {{.compute = [this, &model, end, some] { classify(model, train_, end - some, end); },
             .some = static_cast<double>(some),
             .all = static_cast<double>(held_),
             .test = static_cast<double>(test_.images.count)}};
  }

  Evaluation test(Module& model, const DecodeOptions&) const override {
    const Result result = classify(model, test_, 0, test_.images.count);
    Evaluation out;
    out.scores.lower_is_better = false;
    out.scores.list = {{"accuracy", result.accuracy}, {"loss", result.loss}};
    std::vector<int64_t> share(10);
    for (const uint8_t label : test_.labels) ++share[label];
    const double commonest = static_cast<double>(*std::max_element(share.begin(), share.end())) /
                             static_cast<double>(test_.images.count);
    out.notes = {
        text(test_.images.count, " test images; always the commonest digit: ", picture::fixed(commonest, 4))};
    Confusion confusion;
    for (int i = 0; i < 10; ++i) confusion.labels.push_back(std::to_string(i));
    confusion.counts = result.counts;
    out.confusion = confusion;
    return out;
  }

  std::vector<MapView> maps(Module& module, const std::string& given, std::string& caption) const override {
    return maps_with(module, given, {}, caption);
  }

  std::vector<MapView> maps_with(Module& module, const std::string& given, const MapParts& parts,
                                 std::string& caption) const override {
    std::optional<NoGrad> no_grad;
    refuse_gradients(no_grad, parts);
    int64_t index = 0;
    if (!given.empty()) {
      const auto [at, fault] = std::from_chars(given.data(), given.data() + given.size(), index);
      if (fault != std::errc() || at != given.data() + given.size() || index < 0 ||
          index >= test_.images.count) {
        fail("'", given, "' is no test image. Give its number, 0 to ", test_.images.count - 1, ".");
      }
    }
    MapRecorder recorder = recorder_for(parts);
    const Tensor logits =
        dynamic_cast<Classifier&>(module)(tensors(test_, {index}).tensors[0], {}, {.recorder = &recorder});
    explain_choice(logits, parts);
    caption = text(caption_of(index), "; the model says ", likeliest(logits)[0]);
    const auto pixels = test_.images.pixels.begin() + index * 784;
    const auto picture = std::make_shared<TokenPicture>();
    picture->height = picture->width = 28;
    picture->pixels.assign(pixels, pixels + 784);
    picture->patch = options_.patch;
    picture->first = options_.pool == Pool::first ? 1 : 0;
    const std::vector<std::string> labels = patch_names();
    std::vector<MapView> views;
    for (size_t i = 0; i < recorder.maps.size(); ++i) {
      views.push_back(map_view(module, recorder, i, "encoder self", static_cast<int64_t>(i), labels, labels));
      views.back().picture = picture;
    }
    return views;
  }

  int64_t test_examples() const override { return test_.images.count; }
  std::vector<int64_t> test_lengths(int64_t, int64_t) const override {
    return {static_cast<int64_t>(patch_names().size())};
  }
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t) const override {
    ExampleBatch out{.batch = tensors(test_, {numbers.begin(), numbers.end()}), .rows = {}};
    for (const int64_t number : numbers)
      out.rows.push_back({.number = number, .caption = caption_of(number), .input = patch_names()});
    return out;
  }
  std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                           const ForwardContext& context) const override {
    const NoGrad no_grad;
    return scores_of_examples(dynamic_cast<Classifier&>(model)(examples.batch.tensors[0], {}, context),
                              examples.batch.tensors[1], std::vector<int64_t>(examples.rows.size(), 1));
  }

 private:
  std::string caption_of(int64_t index) const {
    return text("test image ", index, ", a ", static_cast<int64_t>(test_.labels[static_cast<size_t>(index)]));
  }
  /// The names of an image's tokens: row and column of each patch.
  std::vector<std::string> patch_names() const {
    std::vector<std::string> names;
    if (options_.pool == Pool::first) names.emplace_back("first");
    const int64_t side = 28 / options_.patch;
    for (int64_t i = 0; i < side * side; ++i) names.push_back(text(i / side, ",", i % side));
    return names;
  }

  struct Result {
    double accuracy = 0, loss = 0;
    std::vector<int64_t> counts;  // [10, 10]: true class by predicted class
  };

  /// An image's shift in this epoch: a pure function of (seed, epoch, image).
  std::pair<int64_t, int64_t> moved(int64_t index, int64_t max_shift) const {
    const auto draw = [&](uint64_t axis) {
      const auto stream = static_cast<uint64_t>(epoch_) | uint64_t{1} << 40;  // distinct from plan()'s stream
      return counter_below(seed_, stream, 2 * static_cast<uint64_t>(index) + axis, 2 * max_shift + 1) -
             max_shift;
    };
    return {draw(0), draw(1)};
  }

  /// [0] patches [B, T, patch^2] in 0..1, [1] labels i32 [B]. Shifts images by up to `shift` pixels; what
  /// enters at an edge is background.
  Batch tensors(const LabelledImages& set, const std::vector<int64_t>& indices, int64_t shift = 0) const {
    const int64_t p = options_.patch, side = 28 / p;
    const auto count = static_cast<int64_t>(indices.size());
    std::vector<float> values(static_cast<size_t>(count * 784));
    std::vector<int32_t> labels;
    float* to = values.data();
    for (int64_t index : indices) {
      const uint8_t* image = set.images.pixels.data() + index * 784;
      std::array<uint8_t, 784> canvas;
      if (shift > 0) {
        const auto [down, right] = moved(index, shift);
        move_image(image, down, right, canvas.data());
        image = canvas.data();
      }
      for (int64_t patch = 0; patch < side * side; ++patch) {
        const uint8_t* corner = image + patch / side * p * 28 + patch % side * p;
        for (int64_t y = 0; y < p; ++y) {
          for (int64_t x = 0; x < p; ++x) *to++ = static_cast<float>(corner[y * 28 + x]) / 255.0f;
        }
      }
      labels.push_back(set.labels[static_cast<size_t>(index)]);
    }
    Batch batch;
    batch.tensors = {Tensor::of<float>(values, Shape{count, side * side, p * p}),
                     Tensor::of<int32_t>(labels, Shape{count})};
    batch.weight = static_cast<double>(count);
    batch.tokens = count * side * side;
    return batch;
  }

  Result classify(Module& module, const LabelledImages& set, int64_t begin, int64_t end) const {
    const NoGrad no_grad;
    auto& model = dynamic_cast<Classifier&>(module);
    Result result;
    result.counts.assign(100, 0);
    int64_t right = 0;
    CountedWork work(static_cast<double>(end - begin));
    for (int64_t first = begin; first < end; first += scored_at_once) {
      std::vector<int64_t> indices;
      for (int64_t i = first; i < std::min(first + scored_at_once, end); ++i) indices.push_back(i);
      const Batch batch = tensors(set, indices);
      const Tensor logits = model(batch.tensors[0], {}, {});
      result.loss += cross_entropy(logits, batch.tensors[1]).item() * batch.weight;
      const std::vector<float> scores = logits.to_host();
      for (size_t i = 0; i < indices.size(); ++i) {
        const float* row = scores.data() + i * 10;
        const auto guess = std::max_element(row, row + 10) - row;
        const auto label = set.labels[static_cast<size_t>(indices[i])];
        ++result.counts[static_cast<size_t>(label * 10 + guess)];
        right += guess == label ? 1 : 0;
      }
      work.add(batch.weight);
    }
    const double count = static_cast<double>(std::max<int64_t>(end - begin, 1));
    result.accuracy = static_cast<double>(right) / count;
    result.loss /= count;
    return result;
  }

  static constexpr int64_t scored_at_once = 500;
  Options options_;
  LabelledImages train_, test_;
  int64_t held_ = 0, batch_ = 1, epoch_ = 0;
  uint64_t seed_ = 1;
  double smoothing_ = 0;
  std::vector<int64_t> order_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace

TaskEntry task::mnist() {
  return {"mnist", "handwritten digits as patches: encoder, accuracy",
          []() -> std::unique_ptr<Task> { return std::make_unique<Mnist>(); }};
}

}  // namespace heed
