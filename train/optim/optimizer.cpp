// Contiguous parameters and their updates.
#include "heed/train/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "heed/autograd/backward_findings.h"
#include "heed/core/io/hash.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/kernels/elementwise/moving_average.h"
#include "heed/core/kernels/elementwise/muon_update.h"
#include "heed/core/kernels/elementwise/optimizer_update.h"
#include "heed/core/kernels/norm/reduce.h"
#include "heed/core/launch.h"
#include "heed/train/optim/parameter_order.h"

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
  state_keys_.push_back({.rate = 1, .is_muon = false});
  int64_t end = 0;
  for (const OrderedParameter& one : ordered(module, named, options)) {
    check_free(*one.parameter);
    parameters.push_back(one.parameter);
    names += one.parameter->name + "\n";
    const int64_t begin = std::exchange(end, end + padded(one.parameter->tensor->size()));
    const bool decays = !one.is_vector || options.decay_vectors;
    const ParameterGroup none, &group = one.group < 0 ? none : options.groups[static_cast<size_t>(one.group)];
    const bool is_muon = one.is_hidden && options.kind == OptimizerKind::muon;
    add_range(begin, end, group.weight_decay.value_or(decays ? options.decay() : 0),
              {.rate = group.rate * (one.is_hidden ? options.hidden_rate : 1), .is_muon = is_muon});
    if (is_muon) add_matrix(begin, *one.parameter->tensor);
    if (is_muon || (one.group < 0 && decays)) decayed_ = end;
  }
  const bool is_newer = options.kind > OptimizerKind::sgd;  // files of the older kinds are as ever
  if (is_newer) names += choice_of(options_.kind).word();
  if (is_newer || options.hidden_rate != 1 || !options.groups.empty())
    layout_ = static_cast<int64_t>(crc32c(names)) + 1;
  move(module, parameters);
  take_backward_findings();  // forgets what was computed before
}

Optimizer::~Optimizer() {
  for (const Tensor& leaf : leaves_) {
    leaf.node()->in_arena = leaf.node()->fresh = false;
    leaf.node()->grad = Tensor();
  }
}

void Optimizer::add_range(int64_t begin, int64_t end, double decay, const StateKey& key) {
  const auto found = std::ranges::find(state_keys_, key);
  const auto state = static_cast<size_t>(found - state_keys_.begin());
  if (found == state_keys_.end()) {
    state_keys_.push_back(key);
    states_.emplace_back();
  }
  Range* last = ranges_.empty() ? nullptr : &ranges_.back();
  if (last != nullptr && last->decay == decay && last->state == state)
    last->end = end;
  else
    ranges_.push_back({begin, end, decay, state});
}

void Optimizer::add_matrix(int64_t begin, const Tensor& matrix) {
  const MatrixRun run{
      .begin = begin, .rows = matrix.extent(0), .columns = matrix.extent(1), .stride = padded(matrix.size())};
  MatrixRun* last = matrices_.empty() || begin == ranges_.back().begin ? nullptr : &matrices_.back();
  if (last != nullptr && last->rows == run.rows && last->columns == run.columns)
    ++last->count;
  else
    matrices_.push_back(run);
  orthogonalized_ = matrices_.back().end();
}

void Optimizer::move(Module& module, const std::vector<const Named*>& parameters) {
  const DType dtype = parameters[0]->tensor->dtype();
  const Device device = parameters[0]->tensor->device();
  const Shape all{ranges_.back().end};
  {
    const MemoryScope owned(MemoryKind::weights);
    values_ = Tensor::zeros(all, dtype, device);
    if (options_.ema > 0 || options_.kind == OptimizerKind::schedule_free)
      average_ = Tensor::zeros(all, dtype, device);
  }
  {
    const MemoryScope owned(MemoryKind::gradients);
    gradients_ = Tensor::zeros(all, dtype, device);
  }
  const MemoryScope owned(MemoryKind::moments);
  first_ = Tensor::zeros(all, dtype, device);
  const bool has_second = options_.kind != OptimizerKind::sgd && options_.kind != OptimizerKind::lion;
  second_ = Tensor::zeros(Shape{has_second ? all[0] - orthogonalized_ : 0}, dtype, device);
  if (!matrices_.empty()) newton_schulz_ = NewtonSchulz(matrices_, dtype, device);
  for (Tensor& state : states_) state = Tensor::zeros(Shape{5}, DType::f64, device);
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
  double share = 0;
  if (options_.kind == OptimizerKind::schedule_free) {
    share = schedule_free_share(rate);
    if (steps_ == 0) {  // all sequences begin at the weights
      launch<kernel::Copy>(device, values_, first_);
      launch<kernel::Copy>(device, values_, average_);
    }
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    const auto& [factor, is_muon] = state_keys_[i];
    launch<kernel::BeginOptimizerStep>(device, states_[i], rate * factor, steps_,
                                       is_muon ? options_.muon.momentum : momentum.value_or(default_momentum),
                                       share);
  }
}

double Optimizer::schedule_free_share(double rate) {
  rates_before_ = rates_;
  rates_.max = std::max(rates_.max, rate);
  const double weight = rates_.max * rates_.max;
  rates_.sum += weight;
  return rates_.sum > 0 ? weight / rates_.sum : 0;
}

void Optimizer::forget_step() {
  --steps_;
  rates_ = rates_before_;
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
  if (options_.ema > 0)
    launch<kernel::MovingAverage>(values_.device(), values_, states_[0], options_.ema, average_);
}

void Optimizer::update(const Range& range) {
  if (state_keys_[range.state].is_muon) return update_matrices(range);
  const Device device = values_.device();
  const Tensor& state = states_[range.state];
  const auto part = [&](const Tensor& x) { return view::slice(x, 0, range.begin, range.end); };
  const auto second = [&] {
    return view::slice(second_, 0, range.begin - orthogonalized_, range.end - orthogonalized_);
  };
  const bool is_adam = options_.kind == OptimizerKind::adam;
  const kernel::AdamWConstants constants{.beta2 = options_.beta2,
                                         .epsilon = options_.epsilon,
                                         .decay = range.decay,
                                         .decoupled = !is_adam,
                                         .clip_value = options_.grad_clip_value,
                                         .clip = options_.grad_clip};
  const Tensor gradient = part(gradients_);
  switch (options_.kind) {
    case OptimizerKind::sgd:
      return launch<kernel::Sgd>(device, part(values_), gradient, part(first_), state, range.decay,
                                 options_.grad_clip_value, options_.grad_clip);
    case OptimizerKind::lion:
      return launch<kernel::Lion>(device, part(values_), gradient, part(first_), state, constants);
    case OptimizerKind::schedule_free:
      return launch<kernel::ScheduleFree>(
          device, kernel::ScheduleFreeTensors{part(values_), part(first_), part(average_), second()},
          gradient, state, constants);
    case OptimizerKind::adamw:
    case OptimizerKind::adam:
    case OptimizerKind::muon:
      return launch<kernel::AdamW>(device, part(values_), gradient, part(first_), second(), state, constants);
  }
}

void Optimizer::update_matrices(const Range& range) {
  const Device device = values_.device();
  const Tensor& state = states_[range.state];
  for (const MatrixRun& run : matrices_) {
    if (run.begin < range.begin || run.begin >= range.end) continue;
    const auto part = [&](const Tensor& x) { return view::slice(x, 0, run.begin, run.end()); };
    const Shape flat{run.count * run.stride};
    launch<kernel::MuonDirection>(device, part(gradients_), part(first_), state, options_.grad_clip_value,
                                  options_.grad_clip, view::reshape(newton_schulz_.input(run), flat));
    const Tensor direction = newton_schulz_.run(run, options_.muon.newton_schulz_steps);
    launch<kernel::MuonStep>(device, part(values_), view::reshape(direction, flat), state, range.decay,
                             muon_scale(options_.muon.scaling, run.rows, run.columns));
  }
}

void Optimizer::swap_average() {
  if (!average_) return;
  has_average_in_place_ = !has_average_in_place_;
  if (steps_ == 0) return;  // there is no average yet
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
  rates_ = {};
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

}  // namespace heed
