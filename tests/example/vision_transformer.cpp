// A vision transformer that reads handwritten digits, built from layers (Dosovitskiy et al. 2020, arXiv
// 2010.11929): vision_transformer RUN
#include <heed/data/synthetic/digits.h>
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

constexpr int64_t width = 64, patch = 7, tokens = 17;  // 4 x 4 patches and the class token

struct VisionTransformer final : Module {
  VisionTransformer(const TransformerConfig& config, Rng& rng)
      : patches(1, width, {.size = patch, .stride = patch}, rng),
        class_token(truncated_normal_parameter(Shape{1, 1, width}, 0.02, rng)),
        position(PositionKind::learned, tokens, width, rng),
        encoder(config, {}, attention_factory("softmax"), {}, rng),
        classes(width, 10, rng) {}
  Tensor operator()(const Tensor& images, const ForwardContext& context) const {
    const int64_t batch = images.extent(0);
    const Tensor pieces = reshape(patches(images), Shape{batch, -1, width});
    const Tensor x = position(concat({expand(class_token, Shape{batch, 1, width}), pieces}, 1), 0);
    return classes(select(encoder(x, Mask::none(), {}, {}, nullptr, context), 1, 0));
  }
  void fields(Fields& f) override {
    f("patches", patches);
    f("class_token", class_token);
    f("position", position);
    f("encoder", encoder);
    f("classes", classes);
  }
  Convolution2d patches;
  Tensor class_token;
  Position position;
  TransformerStack encoder;
  Linear classes;
};

int main(int, char** argv) {
  const LabelledImages set = digits(4000, 1);  // or read_mnist(folder, false)
  const Tensor pixels = Tensor::of<uint8_t>(set.images.pixels, Shape{set.images.count, 28, 28, 1});
  const Tensor labels = Tensor::of<uint8_t>(set.labels, Shape{set.images.count});
  const TensorDataset all({cast(pixels, DType::f32) / 255, cast(labels, DType::i32)});
  const auto [training, held_out] = random_split(all, 0.9);
  DataLoader loader(training, {.batch_size = 64, .shuffle = true}), validation(held_out, {.batch_size = 200});

  Rng rng(1);
  VisionTransformer model(
      {.d_model = width, .heads = 4, .d_ff = 2 * width, .layers = 2, .activation = Activation::gelu}, rng);
  const auto loss = [](const VisionTransformer& net, const Batch& batch, const ForwardContext& context) {
    const Tensor logits = net(batch[0], context);
    return LossOutput{cross_entropy(logits, batch[1], 0.1), logits, batch[1]};
  };
  FitOptions options{.epochs = 10, .validation = &validation, .metrics = {accuracy()}, .folder = argv[1]};
  options.schedule = {.kind = ScheduleKind::cosine, .learning_rate = 2e-3, .warmup_steps = 30};
  options.optimizer = {.weight_decay = 0.05, .grad_clip = 1, .ema = 0.95};
  options.optimizer.groups = {{.match = "class_token", .weight_decay = 0},
                              {.match = "position.*", .weight_decay = 0}};
  std::printf("accuracy %.3f\n", fit(model, loader, loss, options).best.first());
}
