// Functions of one element: the derivative stands beside the function in
// core/kernels/elementwise/functions.h.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/kernels/elementwise/apply.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// Which of x and y = F(x) is kept for the derivative. y is enough where it has the sign of x, as in relu and
/// elu.
enum class Keep { x, y };

template <class F, Keep keep>
Tensor map(const char* op, const Tensor& x) {
  check_float(op, x);
  const Tensor y = empty_like(x);
  launch<kernel::Map<F>>(x.device(), x, y);
  return record(op, y, {&x}, [kept = keep == Keep::x ? x.detach() : y](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(kept);
    launch<kernel::MapBack<F>>(kept.device(), kept, kept, dy, dx);
    return {dx};
  });
}

}  // namespace

Tensor exp(const Tensor& x) { return map<Exp, Keep::y>("exp", x); }
Tensor log(const Tensor& x) { return map<Log, Keep::x>("log", x); }
Tensor tanh(const Tensor& x) { return map<Tanh, Keep::y>("tanh", x); }
Tensor sigmoid(const Tensor& x) { return map<Sigmoid, Keep::y>("sigmoid", x); }
Tensor relu(const Tensor& x) { return map<Relu, Keep::y>("relu", x); }
Tensor gelu(const Tensor& x) { return map<Gelu, Keep::x>("gelu", x); }
Tensor gelu_tanh(const Tensor& x) { return map<GeluTanh, Keep::x>("gelu_tanh", x); }
Tensor silu(const Tensor& x) { return map<Silu, Keep::x>("silu", x); }
Tensor elu(const Tensor& x) { return map<Elu, Keep::y>("elu", x); }
Tensor sin(const Tensor& x) { return map<Sine, Keep::x>("sin", x); }
Tensor cos(const Tensor& x) { return map<Cosine, Keep::x>("cos", x); }
Tensor softplus(const Tensor& x) { return map<Softplus, Keep::x>("softplus", x); }
Tensor square(const Tensor& x) { return map<Square, Keep::x>("square", x); }
Tensor sqrt(const Tensor& x) { return map<Sqrt, Keep::y>("sqrt", x); }
Tensor reciprocal(const Tensor& x) { return map<Reciprocal, Keep::y>("reciprocal", x); }
Tensor abs(const Tensor& x) { return map<Abs, Keep::x>("abs", x); }

}  // namespace heed
