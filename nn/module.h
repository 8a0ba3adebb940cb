// Module: a thing with parameters; what its fields give.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autograd/narrow_weights.h"
#include "autograd/tape.h"
#include "core/random.h"
#include "nn/fields.h"

namespace heed {

/// A thing with parameters. Modules move but do not copy: a copy would tie all its weights unseen.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  /// Lists parameters, buffers (tensors that are no leaves) and children. The only place where a member is
  /// named.
  virtual void fields(Fields& f) = 0;
};

/// A tensor of a module under its dotted name, such as encoder.blocks.0.attention.key.weight.
struct Named {
  std::string name;
  Tensor* tensor;
};

/// Every trained tensor once, in the order of fields(): a tied one appears under its first name.
std::vector<Named> parameters(Module& module);
/// Parameters and buffers, each once.
std::vector<Named> tensors(Module& module);
/// How many numbers are trained.
int64_t count_parameters(Module& module);
/// The dotted name of a module inside `root`; "" when it is not in it. For Trace.
std::string name_of(Module& root, const void* module);
/// Moves parameters, buffers and constants; ties stay ties. Before an optimizer gathers them.
void move_to(Module& module, Device device);
/// Converts parameters to another float type; ties stay ties. Gradient checks convert to f64.
void convert(Module& module, DType dtype);
/// Rounds the matrices of a trained f32 model to bf16 and keeps copies of them in half the bytes.
NarrowWeights narrow_weights(Module& module);
/// A table of the direct children and what they hold.
std::string summary(Module& module);

/// The tensors as the bytes of a safetensors file.
std::string save(Module& module);
/// Puts saved numbers into the tensors. Fails (Fault::data) on a missing or unknown name, or another shape,
/// and then changes nothing; `name` is what the error calls the file.
void load(Module& module, const std::string& bytes, const std::string& name = "model.safetensors");

/// Parameters that `loss` does not depend on, and leaves it depends on that no module names: both are
/// mistakes in fields() or in a forward(). Fails naming them. The trainer asks before its first step.
void check_listed(Module& module, const Tensor& loss);

/// A visitor that calls f(dotted name, tensor) for every tensor of a module, tied ones each time.
void visit_tensors(Module& module, const std::function<void(const std::string&, Tensor&)>& f);
/// The same, and for places that are empty now, such as a draw that nobody has fixed.
void visit_places(Module& module, const std::function<void(const std::string&, Tensor&)>& f);

}  // namespace heed
