// Gradient checks: perturbs one element at a time and projects the result on a fixed random direction.
#include "heed/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "heed/autograd/tape.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/random.h"
#include "heed/core/scope.h"

namespace heed {
namespace {

using Doubles = std::vector<double>;

bool same_bits(const Doubles& a, const Doubles& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// One element of a tensor on any device, which set() changes; restores its value when destroyed.
class Element : NonCopyable {
 public:
  Element(const Tensor& x, int64_t index) {
    int64_t offset = x.offset();
    for (int64_t axis = x.rank() - 1; axis >= 0; --axis) {
      offset += index % x.extent(axis) * x.strides()[axis];
      index /= x.extent(axis);
    }
    view_ = x.seen_as(Shape{}, Strides{}, offset);
    value_ = view_.item();
  }
  ~Element() { set(value_); }

  double value() const { return value_; }
  void set(double value) const {
    launch<kernel::Fill>(view_.device(), view_, value);
    ++view_.storage()->version;
  }

 private:
  Tensor view_;
  double value_ = 0;
};

/// Clears the gradient of a leaf.
void clear(const Tensor& leaf) {
  Node& node = *leaf.node();
  if (node.in_arena) {
    node.fresh = true;
  } else {
    node.grad = Tensor();
  }
}

/// The elements of f(), which is not recorded.
Doubles evaluate(const std::function<Tensor()>& f) {
  const NoGrad no_grad;
  return f().to_doubles();
}

/// The derivatives of direction . f() by each leaf, from one backward pass: [leaf][element].
std::vector<Doubles> backward_gradients(const std::function<Tensor()>& f, std::span<const Tensor> leaves,
                                        uint64_t seed, Doubles* direction) {
  const auto clear_all = [&] {
    for (const Tensor& leaf : leaves) clear(leaf);
  };
  clear_all();
  const AtScopeEnd clear_at_end(clear_all);
  const Tensor y = f();
  if (y.dtype() != DType::f64)
    fail("gradcheck: the function returns ", y.dtype(), ". It must compute in f64.");
  const Tensor dy = empty_like(y);
  Rng rng(seed, y.device());
  fill_uniform(dy, 0.5, 1.5, rng);  // away from 0, so that every element counts
  *direction = dy.to_doubles();
  if (y.node()) backward(y, dy);
  std::vector<Doubles> out;
  for (const Tensor& leaf : leaves) {
    const Tensor gradient = grad_of(leaf);
    out.push_back(gradient ? gradient.to_doubles() : Doubles(static_cast<size_t>(leaf.size()), 0.0));
  }
  return out;
}

/// `samples` of the indices 0 to size - 1, drawn without repetition; all of them for 0.
std::vector<int64_t> drawn_indices(int64_t size, int64_t samples, Rng& rng) {
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  if (samples <= 0 || samples >= size) return all;
  for (int64_t i = 0; i < samples; ++i) {
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(i + rng.below(size - i))]);
  }
  all.resize(static_cast<size_t>(samples));
  return all;
}

/// The central difference at one element. Results are subtracted before they are summed, so results that do
/// not depend on the element cost no accuracy.
double difference(const std::function<Tensor()>& f, const Tensor& leaf, int64_t index,
                  const Doubles& direction, double step) {
  const Element element(leaf, index);
  const double width = step * std::max(1.0, std::abs(element.value()));
  const double above = element.value() + width, below = element.value() - width;
  element.set(above);
  const Doubles high = evaluate(f);
  element.set(below);
  const Doubles low = evaluate(f);
  if (high.size() != direction.size() || low.size() != direction.size()) {
    fail("gradcheck: the result has ", direction.size(), " elements in one call and ", high.size(),
         " in the next.");
  }
  double total = 0;
  for (size_t i = 0; i < direction.size(); ++i) total += direction[i] * (high[i] - low[i]);
  return total / (above - below);
}

/// Counts an element in the report, and makes it the worst one where its error is larger. `largest` is the
/// largest derivative of the tensor.
void compare(GradcheckReport& report, int64_t input, const Tensor& leaf, int64_t element, double numeric,
             double taped, double largest) {
  const double absolute = std::abs(numeric - taped);
  const double scale = std::max({std::abs(numeric), std::abs(taped), 0.01 * largest, 1e-3});
  const double relative = std::isfinite(absolute) ? absolute / scale : HUGE_VAL;
  ++report.checked;
  if (report.input >= 0 && relative <= report.relative) return;
  report.relative = relative;
  report.absolute = absolute;
  report.input = input;
  report.element = element;
  report.numeric = numeric;
  report.taped = taped;
  report.shape = leaf.shape();
}

}  // namespace

std::string to_string(const GradcheckReport& report) {
  if (!report.repeats) return "gradcheck: two sweeps through the same function gave different bits.";
  if (report.checked == 0)
    return "gradcheck: no element was compared. Give at least one float input or leaf.";
  return text("gradcheck: ", report.passed ? "passed" : "the gradient is wrong", "; worst at element ",
              report.element, " of tensor ", report.input, " ", report.shape, ": the tape gives ",
              report.taped, ", central differences give ", report.numeric, ", relative error ",
              report.relative, ", ", report.checked, " elements compared.",
              report.passed ? "" : " Look at the gradients of the ops this tensor goes through.");
}

GradcheckReport gradcheck(const std::function<Tensor()>& f, std::span<const Tensor> leaves,
                          const GradcheckOptions& options) {
  for (const Tensor& leaf : leaves) {
    if (!leaf.node() || !leaf.node()->leaf)
      fail("gradcheck: a tensor ", leaf.shape(), " is no leaf. Mark it with leaf(x).");
    if (leaf.dtype() != DType::f64) {
      fail("gradcheck: a leaf ", leaf.shape(), " is ", leaf.dtype(),
           ". Differences need f64: convert the module first.");
    }
  }
  if (!same_bits(evaluate(f), evaluate(f))) {
    fail(
        "gradcheck: two calls of the function gave different results. Restore the random source it draws "
        "from.");
  }
  Rng rng(options.seed);
  Doubles direction;
  const std::vector<Doubles> taped = backward_gradients(f, leaves, options.seed, &direction);
  const std::vector<Doubles> again = backward_gradients(f, leaves, options.seed, &direction);
  GradcheckReport report;
  for (size_t i = 0; i < leaves.size(); ++i) {
    report.repeats = report.repeats && same_bits(taped[i], again[i]);
    double largest = 0;
    for (const double value : taped[i]) largest = std::max(largest, std::abs(value));
    for (const int64_t element : drawn_indices(leaves[i].size(), options.samples, rng)) {
      const double numeric = difference(f, leaves[i], element, direction, options.step);
      compare(report, static_cast<int64_t>(i), leaves[i], element, numeric,
              taped[i][static_cast<size_t>(element)], largest);
    }
  }
  report.passed = report.repeats && report.checked > 0 && report.relative <= options.tolerance;
  return report;
}

GradcheckReport gradcheck(const std::function<Tensor(std::span<const Tensor>)>& f, std::vector<Tensor> inputs,
                          const GradcheckOptions& options) {
  std::vector<Tensor> leaves;
  std::vector<int64_t> input_of_leaf;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i] || !is_float(inputs[i].dtype())) continue;
    const Tensor copy(inputs[i].shape(), DType::f64, inputs[i].device());
    launch<kernel::Copy>(copy.device(), inputs[i], copy);
    inputs[i] = leaf(copy);
    leaves.push_back(inputs[i]);
    input_of_leaf.push_back(static_cast<int64_t>(i));
  }
  GradcheckReport report = gradcheck([&] { return f(inputs); }, leaves, options);
  if (report.input >= 0) report.input = input_of_leaf[static_cast<size_t>(report.input)];
  return report;
}

namespace {

void require(const GradcheckReport& report) {
  if (!report.passed) fail(Fault::numeric, to_string(report));
}

}  // namespace

void require_gradients(const std::function<Tensor(std::span<const Tensor>)>& f, std::vector<Tensor> inputs,
                       const GradcheckOptions& options) {
  require(gradcheck(f, std::move(inputs), options));
}

void require_gradients(const std::function<Tensor()>& f, std::span<const Tensor> leaves,
                       const GradcheckOptions& options) {
  require(gradcheck(f, leaves, options));
}

}  // namespace heed
