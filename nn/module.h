// Module: the base class of everything with parameters; naming, counting, saving and moving them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heed/autograd/narrow_weights.h"
#include "heed/autograd/tape.h"
#include "heed/core/random.h"
#include "heed/nn/options.h"

namespace heed {

class SafeTensors;
struct TensorEntry;

/// Base class of layers and models. Modules can be moved but not copied: a copy would silently share all
/// weights.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  Module(Module&&) = default;  ///< tensors are handles: the new module has them, the old one stays empty
  Module& operator=(Module&&) = default;  ///< drops its own tensors for those of the other

  /// Lists parameters, buffers (tensors that are not trained) and children: the only place that names them.
  virtual void fields(Fields& f) = 0;
};

/// A tensor of a module under its dotted name, such as encoder.blocks.0.attention.key.weight.
struct Named {
  std::string name;  ///< names from the root to the tensor, joined by dots
  Tensor* tensor;    ///< lies in the module, which must outlive it
};

/// Every trained tensor once, in the order of fields(); a tied one under its first name.
std::vector<Named> parameters(Module& module);
/// Every parameter and buffer once, in the order of fields().
std::vector<Named> tensors(Module& module);
/// The trained matrices between hidden states: those that fields() lists by Fields::matrix(), and that no
/// other name of theirs, as of a tied one, makes a table or a part of Fields::boundary().
std::vector<Named> hidden_matrices(Module& module);
/// The number of trained elements.
int64_t count_parameters(Module& module);
/// The dotted name of a module inside `root`; "" when it is not inside.
std::string name_of(Module& root, const void* module);
/// Moves parameters, buffers and constants to a device; ties stay ties. Call it before making an optimizer.
void move_to(Module& module, Device device);
/// Converts parameters to another float dtype; ties stay ties. Gradient checks convert to f64.
void convert(Module& module, DType dtype);
/// Chooses tensors of a module by dotted name and value.
using TensorChoice = std::function<bool(const std::string& name, const Tensor& tensor)>;
/// Makes buffers of all parameters, or of the chosen ones: they get no gradient and are left as they are, but
/// saved, moved and counted among tensors(). Call it before making an optimizer. Fails for a choice of none.
void freeze(Module& module, const TensorChoice& choice = {});
/// Makes parameters of the chosen tensors, such as those that freeze() has frozen. Fails for a choice of
/// none.
void unfreeze(Module& module, const TensorChoice& choice);
/// Rounds the matrices of a trained f32 model in place and returns copies in fewer bytes, for faster
/// decoding.
NarrowWeights narrow_weights(Module& module, WeightFormat format);
/// A text table of parameter counts by the first two parts of their names, with the total.
std::string summary(Module& module);

/// Writes the tensors to a safetensors file, which is replaced atomically: a crash leaves the old file or the
/// new one. Fails (Fault::file) where it cannot be written.
void save(Module& module, const Path& path);
/// Loads the tensors of a file that save() wrote, or a checkpoint's model.safetensors. Fails (Fault::data) on
/// a missing name, an unknown name or another shape, and (Fault::numeric) on a number that is NaN or
/// infinite; then it changes nothing. Fails (Fault::file) where the file cannot be read.
void load(Module& module, const Path& path);
/// Loads the tensors of such a file, one after the other.
void load(Module& module, const SafeTensors& file);
/// Fails as load() does where a name, a type or a shape differs. Reads no number.
void check_fits(Module& module, const SafeTensors& file);
/// The bytes of the file that save() writes.
std::string save_bytes(Module& module);
/// Loads from the bytes of a file as load() does. `name`: the file's name in error messages.
void load_bytes(Module& module, std::string bytes, const std::string& name = "model.safetensors");

/// Fails when `loss` does not depend on a parameter, or depends on a leaf that no module lists. Both are
/// mistakes in fields() or forward(). The trainer calls it before its first step.
void check_listed(Module& module, const Tensor& loss);

/// Fails where fields() gives one name to two tensors or to two children. The optimizer, save() and load()
/// call it.
void check_names(Module& module);

/// Calls f(dotted name, tensor) for every tensor of a module; for a tied one once under each name.
void visit_tensors(Module& module, const std::function<void(const std::string&, Tensor&)>& f);
/// Calls f(dotted name, tensor) for every tensor and for every empty one, such as random numbers that a user
/// may fix.
void visit_optional_tensors(Module& module, const std::function<void(const std::string&, Tensor&)>& f);
/// Calls f(dotted name, child) for every module inside `module`, outer ones first.
void visit_modules(Module& module, const std::function<void(const std::string&, Module&)>& f);

namespace detail {
/// The type and shape of a saved tensor: "f32 [2, 3]".
std::string type_and_shape(const TensorEntry& entry);
/// True when a saved tensor has the type and shape of x.
bool has_type_and_shape_of(const TensorEntry& entry, const Tensor& x);
/// Replaces the elements of x, which keeps its storage, by those of a tensor of its type and shape.
void overwrite(Tensor& x, const SafeTensors& file, const TensorEntry& entry);
}  // namespace detail

}  // namespace heed
