// tests/example/vision_transformer.cpp in libtorch: vision_transformer RUN MNIST, the folder of MNIST's four
// files.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace data = torch::data;
namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t width = 64, patch = 7, tokens = 17;

struct VisionTransformerImpl : nn::Module {
  VisionTransformerImpl() {
    register_module("patches", patches);
    class_token = register_parameter("class_token", torch::randn({1, 1, width}) * 0.02);
    position = register_parameter("position", torch::randn({tokens, width}) * 0.02);
    register_module("encoder", encoder);
    register_module("classes", classes);
  }
  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor pieces = patches(images.unsqueeze(1)).flatten(2).transpose(1, 2);
    const torch::Tensor x =
        torch::cat({class_token.expand({images.size(0), 1, width}), pieces}, 1) + position;
    return classes(encoder(x.transpose(0, 1))[0]);  // libtorch's encoder takes [T, B, width]
  }
  nn::Conv2d patches{nn::Conv2dOptions(1, width, patch).stride(patch)};
  torch::Tensor class_token, position;
  // Norms behind each sum: libtorch's layer has no other form.
  nn::TransformerEncoder encoder{nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(width, 4).dim_feedforward(2 * width).activation(torch::kGELU), 2)};
  nn::Linear classes{width, 10};
};
TORCH_MODULE(VisionTransformer);

// Moving average of the weights, which libtorch lacks.
struct Averaged {
  Averaged(const VisionTransformer& model, double decay) : decay_(decay) {
    for (const torch::Tensor& p : model->parameters()) average_.push_back(p.detach().clone());
  }
  void add(const VisionTransformer& model) {
    const double decay = std::min(decay_, (1.0 + double(++steps_)) / (10.0 + double(steps_)));
    size_t i = 0;
    for (const torch::Tensor& p : model->parameters()) average_[i++].lerp_(p.detach(), 1 - decay);
  }
  void exchange(const VisionTransformer& model) {
    const torch::NoGradGuard no_grad;
    size_t i = 0;
    for (torch::Tensor& p : model->parameters()) {
      const torch::Tensor old = p.clone();
      p.copy_(average_[i]);
      average_[i++].copy_(old);
    }
  }

 private:
  double decay_;
  int64_t steps_ = 0;
  std::vector<torch::Tensor> average_;
};

double accuracy(VisionTransformer& model, const torch::Tensor& images, const torch::Tensor& labels) {
  const torch::NoGradGuard no_grad;
  model->eval();
  const double share = model(images).argmax(1).eq(labels).to(torch::kFloat64).mean().item<double>();
  model->train();
  return share;
}

int main(int, char** argv) {
  torch::manual_seed(1);
  const std::filesystem::path folder = argv[1];
  const data::datasets::MNIST set(argv[2]);
  const torch::Tensor images = set.images().slice(0, 0, 4000).squeeze(1),
                      labels = set.targets().slice(0, 0, 4000);
  const torch::Tensor order = torch::randperm(images.size(0));
  const int64_t training = images.size(0) * 9 / 10, batch_size = 64, epochs = 10;
  const torch::Tensor held_out = order.slice(0, training);

  VisionTransformer model;
  std::vector<torch::Tensor> decayed, others;
  for (const auto& item : model->named_parameters()) {
    const bool rests = item.value().dim() < 2 || item.key() == "class_token" || item.key() == "position";
    (rests ? others : decayed).push_back(item.value());
  }
  torch::optim::AdamW optimizer(
      {torch::optim::OptimizerParamGroup(decayed, std::make_unique<torch::optim::AdamWOptions>(
                                                      torch::optim::AdamWOptions(2e-3).weight_decay(0.05))),
       torch::optim::OptimizerParamGroup(others, std::make_unique<torch::optim::AdamWOptions>(
                                                     torch::optim::AdamWOptions(2e-3).weight_decay(0)))},
      torch::optim::AdamWOptions(2e-3));
  Averaged average(model, 0.95);
  double best = 0;
  int64_t first_epoch = 0, step = 0;
  if (std::filesystem::exists(folder / "last.pt")) {  // after the last full epoch; the average starts anew
    torch::serialize::InputArchive archive;
    archive.load_from(folder / "last.pt");
    model->load(archive);
    torch::load(optimizer, folder / "optimizer.pt");
    c10::IValue value;
    archive.read("epoch", value);
    first_epoch = value.toInt();
  }
  const int64_t batches = (training + batch_size - 1) / batch_size, total = epochs * batches;
  step = first_epoch * batches;
  for (int64_t epoch = first_epoch; epoch < epochs; ++epoch) {
    const torch::Tensor shuffled = order.slice(0, 0, training).index_select(0, torch::randperm(training));
    double sum = 0;
    for (int64_t i = 0; i < batches; ++i) {
      const torch::Tensor rows = shuffled.slice(0, i * batch_size, std::min(training, (i + 1) * batch_size));
      ++step;
      const double done = double(step - 30) / double(total - 30);
      const double rate = step < 30 ? 2e-3 * double(step) / 30 : 1e-3 * (1 + std::cos(M_PI * done));
      for (auto& group : optimizer.param_groups())
        static_cast<torch::optim::AdamWOptions&>(group.options()).lr(rate);
      optimizer.zero_grad();
      const torch::Tensor loss =
          F::cross_entropy(model(images.index_select(0, rows)), labels.index_select(0, rows),
                           F::CrossEntropyFuncOptions().label_smoothing(0.1));
      loss.backward();
      nn::utils::clip_grad_norm_(model->parameters(), 1);
      optimizer.step();
      average.add(model);
      sum += loss.item<double>();
    }
    average.exchange(model);
    const double share = accuracy(model, images.index_select(0, held_out), labels.index_select(0, held_out));
    if (share > best) torch::save(model, folder / "best.pt");
    best = std::max(best, share);
    average.exchange(model);
    torch::serialize::OutputArchive archive;
    model->save(archive);
    archive.write("epoch", c10::IValue(epoch + 1));
    archive.save_to(folder / "last.pt");
    torch::save(optimizer, folder / "optimizer.pt");
    std::fprintf(stderr, "epoch %d  loss %.3f  accuracy %.3f\n", int(epoch + 1), sum / double(batches),
                 share);
  }
  std::printf("accuracy %.3f\n", best);
}
