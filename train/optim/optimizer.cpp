// Contiguous parameters and their updates.
#include "heed/train/optim/optimizer.h"

#include <cmath>
#include <cstring>

#include "heed/core/io/safetensors.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {

void OptimizerOptions::fields(Fields& f) {
  f("optimizer", Choice(kind, {"adamw", "adam", "sgd"}), "optimizer");
  f("beta1", beta1, "decay rate of the running mean of gradients");
  f("beta2", beta2, "decay rate of the running mean of squared gradients");
  f("epsilon", epsilon, "added to the root of the second moment");
  f("momentum", momentum, "momentum of sgd");
  f("weight_decay", weight_decay.emplace(decay()), "weight decay, of matrices alone unless decay_vectors");
  f("decay_vectors", decay_vectors, "weight decay of biases, norms and other vectors, too");
  f("grad_clip", grad_clip, "maximum norm of the gradient; 0: no clipping");
  f("grad_clip_value", grad_clip_value,
    "maximum absolute value of each element of the gradient; 0: no clipping");
}

namespace {

/// x = min(max(x, -bound), bound).
void clamp(const Tensor& x, double bound) {
  const Tensor least = view::expand(Tensor::full(Shape{1}, -bound, x.dtype(), x.device()), x.shape());
  launch<kernel::Zip<Maximum>>(x.device(), x, least, x);
  launch<kernel::Affine>(x.device(), x, -1.0, 0.0, x);
  launch<kernel::Zip<Maximum>>(x.device(), x, least, x);
  launch<kernel::Affine>(x.device(), x, -1.0, 0.0, x);
}

// Every parameter starts on a cache line, so that rows stay aligned.
int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }

}  // namespace

Optimizer::Optimizer(Module& module, const OptimizerOptions& options) : options_(options) {
  const std::vector<Named> named = parameters(module);
  if (named.empty()) fail("optimizer: the module has no parameters. List them in its fields().");
  const DType dtype = named[0].tensor->dtype();
  const Device device = named[0].tensor->device();
  std::vector<const Named*> order;
  for (const bool matrices : {true, false}) {
    for (const Named& one : named) {
      if ((one.tensor->rank() >= 2) == matrices) order.push_back(&one);
    }
    if (matrices || options.decay_vectors) {
      decayed_ = 0;
      for (const Named* one : order) decayed_ += padded(one->tensor->size());
    }
  }
  int64_t total = 0;
  for (const Named* one : order) total += padded(one->tensor->size());
  {
    const MemoryScope owned(MemoryKind::weights);
    values_ = Tensor::zeros(Shape{total}, dtype, device);
  }
  {
    const MemoryScope owned(MemoryKind::gradients);
    gradients_ = Tensor::zeros(Shape{total}, dtype, device);
  }
  const MemoryScope owned(MemoryKind::moments);
  first_ = Tensor::zeros(Shape{total}, dtype, device);
  second_ = Tensor::zeros(Shape{options.kind == OptimizerKind::sgd ? 0 : total}, dtype, device);
  state_ = Tensor::zeros(Shape{4}, DType::f64, device);
  std::vector<std::pair<const Node*, Tensor>> moved;
  int64_t at = 0;
  for (const Named* one : order) {
    const Tensor old = *one->tensor;
    Tensor place = values_.seen_as(old.shape(), Strides::contiguous(old.shape()), at);
    launch<kernel::Copy>(device, old.detach(), place);
    Node& node = *old.node();
    node.grad = gradients_.seen_as(old.shape(), Strides::contiguous(old.shape()), at);
    node.in_arena = true;
    node.fresh = true;
    place.set_node(old.node());
    moved.emplace_back(old.node().get(), place);
    leaves_.push_back(place);
    at += padded(old.size());
  }
  // Tied parameters occur in several modules with one node: move all of them.
  visit_tensors(module, [&](const std::string&, Tensor& tensor) {
    for (const auto& [node, place] : moved) {
      if (tensor.node().get() == node) {
        tensor = place;
        return;
      }
    }
  });
}

void Optimizer::step(double rate, std::span<const Tensor> losses) {
  begin_step(rate);
  update(losses);
  end_step();
}

void Optimizer::begin_step(double rate, std::optional<double> momentum) {
  const Device device = values_.device();
  launch<kernel::Fill>(device, view::slice(state_, 0, 0, 1), rate);
  launch<kernel::Fill>(device, view::slice(state_, 0, 1, 2), static_cast<double>(steps_));
  const double default_momentum = options_.kind == OptimizerKind::sgd ? options_.momentum : options_.beta1;
  launch<kernel::Fill>(device, view::slice(state_, 0, 3, 4), momentum.value_or(default_momentum));
}

void Optimizer::end_step() {
  ++values_.storage()->version;
  ++steps_;
  clear();
}

void Optimizer::update(std::span<const Tensor> losses) {
  const NoGrad no_grad;
  const Device device = values_.device();
  for (const Tensor& leaf : leaves_) {
    // No gradient was computed: the buffer still holds that of an earlier step.
    if (leaf.node()->fresh) launch<kernel::Fill>(device, leaf.node()->grad, 0.0);
  }
  const Tensor squares = view::slice(state_, 0, 2, 3);
  launch<kernel::SquareSum>(device, gradients_, squares);
  for (const Tensor& loss : losses) {  // adds 0, or NaN
    const Tensor zero(Shape{1}, DType::f64, device);
    launch<kernel::SquareSum>(device, loss, zero);
    launch<kernel::Affine>(device, zero, 0.0, 0.0, zero);
    launch<kernel::Accumulate>(device, zero, squares);
  }
  // Non-finite elements are already in the sum of squares, so they may be clipped now.
  if (options_.grad_clip_value > 0) clamp(gradients_, options_.grad_clip_value);
  const auto run = [&](int64_t begin, int64_t end, double decay) {
    if (begin == end) return;
    const auto part = [&](const Tensor& x) { return view::slice(x, 0, begin, end); };
    if (options_.kind == OptimizerKind::sgd) {
      launch<kernel::Sgd>(device, part(values_), part(gradients_), part(first_), state_, decay,
                          options_.grad_clip);
    } else {
      launch<kernel::AdamW>(device, part(values_), part(gradients_), part(first_), part(second_), state_,
                            kernel::AdamWConstants{.beta2 = options_.beta2,
                                                   .epsilon = options_.epsilon,
                                                   .decay = decay,
                                                   .decoupled = options_.kind == OptimizerKind::adamw,
                                                   .clip = options_.grad_clip});
    }
  };
  run(0, decayed_, options_.decay());
  run(decayed_, values_.size(), 0);
}

void Optimizer::reset() {
  launch<kernel::Fill>(first_.device(), first_, 0.0);
  if (second_.size() > 0) launch<kernel::Fill>(second_.device(), second_, 0.0);
  steps_ = 0;
  clear();
}

void Optimizer::clear() {
  for (const Tensor& leaf : leaves_) leaf.node()->fresh = true;
}

Tensor Optimizer::squared_norm() const { return view::slice(state_, 0, 2, 3); }

double Optimizer::gradient_norm() const { return std::sqrt(squared_norm().item()); }

double Optimizer::value_norm() const {
  const Tensor sum(Shape{1}, DType::f64, values_.device());
  launch<kernel::SquareSum>(values_.device(), values_, sum);
  return std::sqrt(sum.item());
}

std::string Optimizer::save() const {
  const int64_t count = steps_;
  std::vector<TensorBytes> list;
  std::vector<Tensor> kept;
  kept.reserve(2);
  const auto add = [&](const char* name, const Tensor& x) {
    if (x.size() == 0) return;
    const Tensor& here = kept.emplace_back(x.to(Device::cpu));
    list.push_back({name,
                    to_string(x.dtype()),
                    {x.size()},
                    std::span(static_cast<const std::byte*>(here.raw()), static_cast<size_t>(x.bytes()))});
  };
  add("first", first_);
  add("second", second_);
  list.push_back({"steps", "i64", {1}, std::as_bytes(std::span(&count, 1))});
  return encode_safetensors(list);
}

void Optimizer::load(const std::string& bytes) {
  const SafeTensors file = SafeTensors::parse(bytes, "optim.safetensors");
  // Check everything before writing anything.
  const auto check = [&](const char* name, int64_t size) {
    if (size == 0) return;
    const auto found = static_cast<int64_t>(file.bytes(file.at(name)).size());
    if (found != size)
      fail(Fault::data, "optim.safetensors: ", name, " has ", found, " bytes, this model needs ", size,
           " (at byte ", file.at(name).offset, "). Resume with the configuration of the run.");
  };
  check("first", first_.bytes());
  check("second", second_.bytes());
  if (second_.size() == 0 && file.find("second") != nullptr)
    fail(Fault::data, "optim.safetensors: at byte ", file.at("second").offset,
         " are second moments, which sgd does not have. Resume with the configuration "
         "of the run.");
  check("steps", sizeof steps_);
  const auto put = [&](const char* name, const Tensor& to) {
    if (to.size() == 0) return;
    const Tensor saved(to.shape(), to.dtype(), Device::cpu);
    std::memcpy(saved.raw(), file.bytes(file.at(name)).data(), static_cast<size_t>(saved.bytes()));
    launch<kernel::Copy>(to.device(), saved.to(to.device()), to);
  };
  put("first", first_);
  put("second", second_);
  std::memcpy(&steps_, file.bytes(file.at("steps")).data(), sizeof steps_);
}

}  // namespace heed
