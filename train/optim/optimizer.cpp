// Contiguous parameters and their updates.
#include "heed/train/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "heed/autograd/backward_findings.h"
#include "heed/core/io/hash.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/elementwise/moving_average.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The losses of a step as one contiguous tensor of this dtype; empty where there are none.
Tensor joined(std::span<const Tensor> losses, DType dtype) {
  if (losses.empty()) return {};
  int64_t size = 0;
  for (const Tensor& loss : losses) size += loss.size();
  const Tensor& first = losses.front();
  if (losses.size() == 1 && first.dtype() == dtype && first.contiguous()) return first;
  const Tensor all(Shape{size}, dtype, first.device());
  int64_t at = 0;
  for (const Tensor& loss : losses) {
    launch<kernel::Copy>(all.device(), loss,
                         all.seen_as(loss.shape(), Strides::contiguous(loss.shape()), at));
    at += loss.size();
  }
  return all;
}

// Every parameter starts on a cache line, so that rows stay aligned.
int64_t padded(int64_t size) { return (size + 15) / 16 * 16; }

/// Fails for a parameter that another optimizer has.
void check_free(const Named& parameter) {
  if (parameter.tensor->node()->in_arena)
    fail("optimizer: the parameter ", parameter.name,
         " belongs to another optimizer, which would no longer change it. Use one optimizer with groups "
         "(OptimizerOptions::groups), or end the other one first.");
}

/// A parameter, and where it belongs.
struct Grouped {
  const Named* parameter;
  int64_t group;  // -1: none
  bool is_vector;
};

/// Fails for a group to which no tensor of the module belongs; one that is frozen already counts.
void check_used(const std::vector<Named>& tensors, const std::vector<ParameterGroup>& groups) {
  std::vector<bool> used(groups.size());
  std::vector<std::string> names;
  for (const Named& one : tensors) {
    if (const int64_t group = group_of(groups, one.name, *one.tensor); group >= 0)
      used[static_cast<size_t>(group)] = true;
    names.push_back(one.name);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused == used.end()) return;
  const std::string& match = groups[static_cast<size_t>(unused - used.begin())].match;
  std::string near;
  for (const std::string& name : names_near(match, names, 3)) near += (near.empty() ? "" : ", ") + name;
  fail("optimizer: the group ", shown(match),
       " chooses no parameter that earlier groups lack. Near it are: ", near,
       ". heed::summary(model) lists all.");
}

/// The parameters: those without a group first, of each group the matrices first.
std::vector<Grouped> grouped(const std::vector<Named>& parameters,
                             const std::vector<ParameterGroup>& groups) {
  std::vector<Grouped> out;
  for (const Named& one : parameters)
    out.push_back({&one, group_of(groups, one.name, *one.tensor), one.tensor->rank() < 2});
  std::stable_sort(out.begin(), out.end(), [](const Grouped& a, const Grouped& b) {
    return std::pair(a.group, a.is_vector) < std::pair(b.group, b.is_vector);
  });
  return out;
}

}  // namespace

Optimizer::Optimizer(Module& module, const OptimizerOptions& options) : options_(options) {
  check_names(module);
  options.check();
  check_groups(options.groups);
  check_used(tensors(module), options.groups);
  if (std::ranges::any_of(options.groups, &ParameterGroup::frozen))
    freeze(module, [&](const std::string& name, const Tensor& parameter) {
      const int64_t group = group_of(options.groups, name, parameter);
      return group >= 0 && options.groups[static_cast<size_t>(group)].frozen;
    });
  const std::vector<Named> named = parameters(module);
  if (named.empty()) {
    const size_t frozen = tensors(module).size();
    fail("optimizer: the module has no parameters. ",
         frozen > 0 ? text("All of its ", frozen, " tensors are frozen.") : "List them in its fields().");
  }
  std::vector<const Named*> parameters;
  std::string names;
  states_.emplace_back();
  rates_.push_back(1);
  int64_t end = 0;
  for (const Grouped& one : grouped(named, options.groups)) {
    check_free(*one.parameter);
    parameters.push_back(one.parameter);
    names += one.parameter->name + "\n";
    const int64_t begin = std::exchange(end, end + padded(one.parameter->tensor->size()));
    const bool decays = !one.is_vector || options.decay_vectors;
    if (one.group < 0) {
      add_range(begin, end, decays ? options.decay() : 0, 1);
      if (decays) decayed_ = end;
    } else {
      const ParameterGroup& group = options.groups[static_cast<size_t>(one.group)];
      add_range(begin, end, group.weight_decay.value_or(decays ? options.decay() : 0), group.rate);
    }
  }
  if (!options.groups.empty()) layout_ = static_cast<int64_t>(crc32c(names)) + 1;
  move(module, parameters);
  take_backward_findings();  // forgets what was computed before
}

Optimizer::~Optimizer() {
  for (const Tensor& leaf : leaves_) {
    leaf.node()->in_arena = leaf.node()->fresh = false;
    leaf.node()->grad = Tensor();
  }
}

void Optimizer::add_range(int64_t begin, int64_t end, double decay, double rate) {
  size_t state = 0;
  while (state < rates_.size() && rates_[state] != rate) ++state;
  if (state == rates_.size()) {
    rates_.push_back(rate);
    states_.emplace_back();
  }
  Range* last = ranges_.empty() ? nullptr : &ranges_.back();
  if (last != nullptr && last->decay == decay && last->state == state)
    last->end = end;
  else
    ranges_.push_back({begin, end, decay, state});
}

void Optimizer::move(Module& module, const std::vector<const Named*>& parameters) {
  const DType dtype = parameters[0]->tensor->dtype();
  const Device device = parameters[0]->tensor->device();
  const Shape all{ranges_.back().end};
  {
    const MemoryScope owned(MemoryKind::weights);
    values_ = Tensor::zeros(all, dtype, device);
    if (options_.ema > 0) average_ = Tensor::zeros(all, dtype, device);
  }
  {
    const MemoryScope owned(MemoryKind::gradients);
    gradients_ = Tensor::zeros(all, dtype, device);
  }
  const MemoryScope owned(MemoryKind::moments);
  first_ = Tensor::zeros(all, dtype, device);
  second_ = Tensor::zeros(options_.kind == OptimizerKind::sgd ? Shape{0} : all, dtype, device);
  for (Tensor& state : states_) state = Tensor::zeros(Shape{4}, DType::f64, device);
  std::vector<std::pair<const Node*, Tensor>> moved;
  int64_t at = 0;
  for (const Named* one : parameters) {
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
    names_.push_back(one->name);
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
  if (average_) launch<kernel::Copy>(device, values_, average_);
}

void Optimizer::step(double rate, std::span<const Tensor> losses) {
  if (!(rate >= 0 && std::isfinite(rate)))
    fail("optimizer: step ", steps_ + 1, " has the learning rate ", rate, ". It must be at least 0.");
  if (has_average_in_place_)
    fail("optimizer: step ", steps_ + 1,
         " while an AveragedWeights lives. Let it end first, so that the trained weights are back.");
  checks_.before_update(leaves_, names_);
  begin_step(rate);
  measure(losses);
  // The GPU is not waited for in each step: a step that is not finite changes nothing there, either.
  constexpr int64_t steps_between_waits = 16;
  if (values_.device() == Device::cpu || steps_ % steps_between_waits == 0) check_finite(rate);
  apply();
  end_step();
}

void Optimizer::check_finite(double rate) {
  if (options_.on_nan == OnNan::skip || std::isfinite(squared_norm().item())) return;
  std::string bad;
  for (size_t i = 0; i < leaves_.size() && bad.empty(); ++i)
    bad = first_bad_value(leaves_[i].node()->grad, names_[i], "its gradient");
  clear();
  fail(Fault::numeric, "optimizer: step ", steps_ + 1,
       " is not finite: ", bad.empty() ? "the loss, or the norm of the gradient" : bad,
       ". No parameter was changed. Lower the learning rate (now ", rate,
       "), find the op with a Trace, or leave such steps out: OptimizerOptions::on_nan = OnNan::skip.");
}

void Optimizer::begin_step(double rate, std::optional<double> momentum) {
  const Device device = values_.device();
  const double default_momentum = options_.kind == OptimizerKind::sgd ? options_.momentum : options_.beta1;
  for (size_t i = 0; i < states_.size(); ++i)
    launch<kernel::BeginOptimizerStep>(device, states_[i], rate * rates_[i], steps_,
                                       momentum.value_or(default_momentum));
}

void Optimizer::end_step() {
  ++values_.storage()->version;
  ++steps_;
  forget_gradients();
}

void Optimizer::update(std::span<const Tensor> losses) {
  measure(losses);
  apply();
}

void Optimizer::measure(std::span<const Tensor> losses) {
  const Device device = values_.device();
  for (const Tensor& leaf : leaves_) {
    // No gradient was computed: the buffer still holds that of an earlier step.
    if (leaf.node()->fresh) launch<kernel::Fill>(device, leaf.node()->grad, 0.0);
  }
  const Tensor squares = squared_norm();
  launch<kernel::SquareSum>(device, gradients_, joined(losses, gradients_.dtype()), squares);
  for (size_t i = 1; i < states_.size(); ++i)
    launch<kernel::Copy>(device, squares, view::slice(states_[i], 0, 2, 3));
}

void Optimizer::apply() {
  const NoGrad no_grad;
  for (const Range& range : ranges_) update(range);
  if (average_) launch<kernel::MovingAverage>(values_.device(), values_, states_[0], options_.ema, average_);
}

void Optimizer::update(const Range& range) {
  const Device device = values_.device();
  const Tensor& state = states_[range.state];
  const auto part = [&](const Tensor& x) { return view::slice(x, 0, range.begin, range.end); };
  if (options_.kind == OptimizerKind::sgd) {
    launch<kernel::Sgd>(device, part(values_), part(gradients_), part(first_), state, range.decay,
                        options_.grad_clip_value, options_.grad_clip);
  } else {
    launch<kernel::AdamW>(device, part(values_), part(gradients_), part(first_), part(second_), state,
                          kernel::AdamWConstants{.beta2 = options_.beta2,
                                                 .epsilon = options_.epsilon,
                                                 .decay = range.decay,
                                                 .decoupled = options_.kind == OptimizerKind::adamw,
                                                 .clip_value = options_.grad_clip_value,
                                                 .clip = options_.grad_clip});
  }
}

void Optimizer::swap_average() {
  if (!average_) return;
  has_average_in_place_ = !has_average_in_place_;
  const Tensor values = empty_like(values_);
  launch<kernel::Copy>(values_.device(), values_, values);
  launch<kernel::Copy>(values_.device(), average_, values_);
  launch<kernel::Copy>(values_.device(), values, average_);
  ++values_.storage()->version;
}

void Optimizer::check_updates(Module& module) const {
  std::unordered_set<const Node*> known;
  for (const Tensor& leaf : leaves_) known.insert(leaf.node().get());
  for (const Named& one : parameters(module)) {
    if (known.contains(one.tensor->node().get()) && one.tensor->storage() == values_.storage()) continue;
    fail("optimizer: the parameter ", one.name,
         " was replaced or added after the optimizer was made, which does not change it. Make the optimizer "
         "last, and set weights with copy_().");
  }
}

void Optimizer::reset() {
  launch<kernel::Fill>(first_.device(), first_, 0.0);
  if (second_.size() > 0) launch<kernel::Fill>(second_.device(), second_, 0.0);
  steps_ = 0;
  clear();
}

void Optimizer::clear() {
  take_backward_findings();  // forgets gradients that are not used
  forget_gradients();
}

void Optimizer::forget_gradients() {
  for (const Tensor& leaf : leaves_) leaf.node()->fresh = true;
}

Tensor Optimizer::squared_norm() const { return view::slice(states_[0], 0, 2, 3); }

double Optimizer::gradient_norm() const { return std::sqrt(squared_norm().item()); }

double Optimizer::value_norm() const {
  const Tensor sum(Shape{1}, DType::f64, values_.device());
  launch<kernel::SquareSum>(values_.device(), values_, Tensor(), sum);
  return std::sqrt(sum.item());
}

std::string Optimizer::save() const {
  const int64_t count = steps_;
  std::vector<TensorBytes> list;
  std::vector<Tensor> kept;
  kept.reserve(3);
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
  if (average_) add("values", values_);
  if (layout_ != 0) list.push_back({"layout", "i64", {1}, std::as_bytes(std::span(&layout_, 1))});
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
  const bool has_values = file.find("values") != nullptr;
  if (has_values != static_cast<bool>(average_))
    fail(Fault::data, "optim.safetensors: it is of a run ", has_values ? "with" : "without",
         " a moving average of weights, and this one is ", has_values ? "without" : "with",
         " (ema). Resume with the configuration of the run.");
  if (average_) check("values", values_.bytes());
  int64_t layout = 0;
  if (file.find("layout") != nullptr) {
    check("layout", sizeof layout);
    std::memcpy(&layout, file.bytes(file.at("layout")).data(), sizeof layout);
  }
  if (layout != layout_)
    fail(Fault::data,
         "optim.safetensors: its groups of parameters are not those of this optimizer. Resume with "
         "the configuration of the run.");
  const auto put = [&](const char* name, const Tensor& to) {
    if (to.size() == 0) return;
    const Tensor saved(to.shape(), to.dtype(), Device::cpu);
    std::memcpy(saved.raw(), file.bytes(file.at(name)).data(), static_cast<size_t>(saved.bytes()));
    launch<kernel::Copy>(to.device(), saved.to(to.device()), to);
  };
  put("first", first_);
  put("second", second_);
  if (average_) {
    launch<kernel::Copy>(values_.device(), values_, average_);  // the model's file has the averaged weights
    put("values", values_);
  }
  std::memcpy(&steps_, file.bytes(file.at("steps")).data(), sizeof steps_);
}

}  // namespace heed
