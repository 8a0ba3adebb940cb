// Names, counts, moving, saving and checks of modules, all by visiting fields().
#include "heed/nn/module.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "heed/autograd/ops.h"
#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/core/io/table_text.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

namespace {

/// Calls functions with the dotted names of tensors and modules; an empty function is skipped.
class Visitor : public Fields {
 public:
  using OnTensor = std::function<void(const std::string&, Tensor&)>;
  using OnModule = std::function<void(const std::string&, Module&)>;
  Visitor(OnTensor on_tensor, OnModule on_module, OnTensor on_empty = {}, OnTensor on_constant = {})
      : on_tensor_(std::move(on_tensor)),
        on_module_(std::move(on_module)),
        on_empty_(std::move(on_empty)),
        on_constant_(std::move(on_constant)) {}

 private:
  void on(const char* name, Tensor& tensor) override {
    if (on_tensor_) on_tensor_(path(name), tensor);
  }
  void on_empty(const char* name, Tensor& tensor) override {
    if (on_empty_) on_empty_(path(name), tensor);
  }
  void on_constant(const char* name, Tensor& tensor) override {
    if (on_constant_) on_constant_(path(name), tensor);
  }
  void on(const char* name, Module& child) override {
    const std::string outer = prefix_;
    prefix_ = path(name);
    if (on_module_) on_module_(prefix_, child);
    child.fields(*this);
    prefix_ = outer;
  }
  std::string path(const char* name) const { return prefix_.empty() ? name : prefix_ + "." + name; }

  OnTensor on_tensor_;
  OnModule on_module_;
  OnTensor on_empty_, on_constant_;
  std::string prefix_;
};

/// Identifies a tensor: tied parameters share a leaf, shared buffers share memory.
const void* identity(const Tensor& tensor) {
  return tensor.node() ? static_cast<const void*>(tensor.node().get()) : tensor.raw();
}

}  // namespace

void visit_tensors(Module& module, const std::function<void(const std::string&, Tensor&)>& f) {
  Visitor visitor(f, {});
  module.fields(visitor);
}

void visit_optional_tensors(Module& module, const std::function<void(const std::string&, Tensor&)>& f) {
  Visitor visitor(f, {}, f);
  module.fields(visitor);
}

void visit_modules(Module& module, const std::function<void(const std::string&, Module&)>& f) {
  Visitor visitor({}, f);
  module.fields(visitor);
}

std::vector<Named> tensors(Module& module) {
  std::vector<Named> out;
  std::unordered_set<const void*> known;
  visit_tensors(module, [&](const std::string& name, Tensor& tensor) {
    if (known.insert(identity(tensor)).second) out.push_back({name, &tensor});
  });
  return out;
}

std::vector<Named> parameters(Module& module) {
  std::vector<Named> out = tensors(module);
  std::erase_if(out, [](const Named& named) { return named.tensor->node() == nullptr; });
  return out;
}

namespace {

/// Sorts the trained tensors of a module into matrices between hidden states and others.
class MatrixVisitor final : public Fields {
 public:
  std::unordered_set<const void*> hidden, others;

 private:
  void on(const char*, Tensor& tensor) override { others.insert(identity(tensor)); }
  void on_matrix(const char*, Tensor& tensor) override {
    (is_boundary_ ? others : hidden).insert(identity(tensor));
  }
  void on(const char*, Module& child) override { child.fields(*this); }
  void on_boundary(const char*, Module& child) override {
    const ScopedValue inside(is_boundary_, true);
    child.fields(*this);
  }

  bool is_boundary_ = false;
};

}  // namespace

std::vector<Named> hidden_matrices(Module& module) {
  MatrixVisitor found;
  module.fields(found);
  std::vector<Named> out = parameters(module);
  std::erase_if(out, [&](const Named& named) {
    const void* tensor = identity(*named.tensor);
    return !found.hidden.contains(tensor) || found.others.contains(tensor);
  });
  return out;
}

int64_t count_parameters(Module& module) {
  int64_t count = 0;
  for (const Named& named : parameters(module)) count += named.tensor->size();
  return count;
}

std::string name_of(Module& root, const void* module) {
  std::string found;
  visit_modules(root, [&](const std::string& name, Module& child) {
    if (&child == module) found = name;
  });
  return found;
}

namespace {

/// Replaces every tensor x by converted(x); tied tensors stay tied.
void replace(Module& module, const std::function<Tensor(const Tensor&)>& converted) {
  std::unordered_map<const void*, Tensor> replacements;
  std::vector<std::pair<Tensor*, const void*>> all;
  visit_tensors(module,
                [&](const std::string&, Tensor& tensor) { all.emplace_back(&tensor, identity(tensor)); });
  for (auto& [tensor, id] : all) {
    auto [entry, is_new] = replacements.try_emplace(id);
    if (is_new) entry->second = tensor->node() ? leaf(converted(tensor->detach())) : converted(*tensor);
  }
  for (auto& [tensor, id] : all) *tensor = replacements[id];
}

}  // namespace

void convert(Module& module, DType dtype) {
  replace(module, [dtype](const Tensor& x) { return is_float(x.dtype()) ? cast(x, dtype) : x; });
}

void move_to(Module& module, Device device) {
  replace(module, [device](const Tensor& x) { return x.to(device); });
  Visitor constants({}, {}, {}, [device](const std::string&, Tensor& x) { x = x.to(device); });
  module.fields(constants);
}

namespace {

/// The tensors of a module that `choice` picks, all where it is empty. Fails where it picks none.
std::vector<Named> chosen(const char* function, Module& module, const TensorChoice& choice) {
  const std::vector<Named> all = tensors(module);
  std::vector<Named> out;
  for (const Named& named : all)
    if (!choice || choice(named.name, *named.tensor)) out.push_back(named);
  if (choice && out.empty())
    fail(function, ": the choice ",
         all.empty() ? std::string("is made among no tensors: the module has none")
                     : text("chooses none of the module's ", all.size(), " tensors, which are ",
                            all.front().name, " to ", all.back().name),
         ". heed::summary(module) lists them.");
  return out;
}

}  // namespace

void freeze(Module& module, const TensorChoice& choice) {
  std::unordered_set<const Node*> frozen;
  for (const Named& named : chosen("freeze", module, choice))
    if (named.tensor->node()) frozen.insert(named.tensor->node().get());
  visit_tensors(module, [&](const std::string&, Tensor& tensor) {
    if (frozen.contains(tensor.node().get())) tensor = tensor.detach();
  });
}

void unfreeze(Module& module, const TensorChoice& choice) {
  std::unordered_map<const void*, Tensor> parameters;
  for (const Named& named : chosen("unfreeze", module, choice))
    if (!named.tensor->node()) parameters[identity(*named.tensor)] = leaf(*named.tensor);
  visit_tensors(module, [&](const std::string&, Tensor& tensor) {
    const auto found = parameters.find(identity(tensor));
    if (found != parameters.end()) tensor = found->second;
  });
}

NarrowWeights narrow_weights(Module& module, WeightFormat format) {
  std::vector<Tensor> all;
  for (const Named& named : parameters(module)) all.push_back(*named.tensor);
  return {all, format};
}

std::string summary(Module& module) {
  std::map<std::string, int64_t> sizes;
  std::vector<std::string> order;
  int64_t total = 0;
  for (const Named& named : parameters(module)) {
    // Group by the first two parts of the name to keep the table short.
    size_t cut = named.name.find('.');
    if (cut != std::string::npos) cut = named.name.find('.', cut + 1);
    const std::string group = named.name.substr(0, cut);
    if (sizes.try_emplace(group, 0).second) order.push_back(group);
    sizes[group] += named.tensor->size();
    total += named.tensor->size();
  }
  std::vector<TableRow> rows;
  for (const std::string& name : order) rows.push_back({name, std::to_string(sizes[name])});
  rows.push_back({"total", std::to_string(total)});
  return aligned_table(rows, {.alignment = "lr", .indent = 2});
}

std::string save_bytes(Module& module) {
  check_names(module);
  std::vector<TensorBytes> list;
  std::vector<Tensor> kept;
  for (const Named& named : tensors(module)) {
    kept.push_back(contiguous(named.tensor->detach()).to(Device::cpu));
    const Tensor& x = kept.back();
    list.push_back({named.name, to_string(x.dtype()),
                    std::vector<int64_t>(x.shape().begin(), x.shape().end()),
                    std::span(static_cast<const std::byte*>(x.raw()), static_cast<size_t>(x.bytes()))});
  }
  return encode_safetensors(list);
}

void save(Module& module, const Path& path) { io::write(path, save_bytes(module)); }

void load(Module& module, const Path& path) { load(module, SafeTensors::open(path)); }

std::string detail::type_and_shape(const TensorEntry& entry) {
  std::string shape;
  for (const int64_t extent : entry.shape) shape += text(shape.empty() ? "" : ", ", extent);
  return text(entry.dtype, " [", shape, "]");
}

bool detail::has_type_and_shape_of(const TensorEntry& entry, const Tensor& x) {
  return entry.dtype == to_string(x.dtype()) &&
         std::equal(entry.shape.begin(), entry.shape.end(), x.shape().begin(), x.shape().end());
}

void detail::overwrite(Tensor& x, const SafeTensors& file, const TensorEntry& entry) {
  const bool is_direct = x.device() == Device::cpu && x.contiguous();
  const Tensor saved = is_direct ? x.detach() : Tensor(x.shape(), x.dtype(), Device::cpu);
  file.copy(entry, 0, {static_cast<std::byte*>(saved.raw()), static_cast<size_t>(saved.bytes())});
  if (!is_direct) launch<kernel::Copy>(x.device(), saved.to(x.device()), x);
  ++x.storage()->version;
}

void load_bytes(Module& module, std::string bytes, const std::string& name) {
  load(module, SafeTensors::parse(std::move(bytes), name));
}

void load(Module& module, const SafeTensors& file) {
  check_fits(module, file);  // everything is checked before anything is written
  for (const TensorEntry& entry : file.entries()) file.check_finite(entry);
  for (const Named& named : tensors(module)) detail::overwrite(*named.tensor, file, file.at(named.name));
}

void check_fits(Module& module, const SafeTensors& file) {
  check_names(module);
  const std::string& name = file.name();
  std::set<std::string> wanted;
  for (const Named& named : tensors(module)) {
    wanted.insert(named.name);
    const TensorEntry* found = file.find(named.name);
    const Tensor& x = *named.tensor;
    if (found == nullptr)
      fail(Fault::data, name, ": tensor ", named.name, " ", x.shape(),
           " is missing in the file (in its header, from byte 8 on).");
    if (!detail::has_type_and_shape_of(*found, x)) {
      fail(Fault::data, name, ": tensor ", named.name, " is ", detail::type_and_shape(*found),
           " in the file, ", x.dtype(), " ", x.shape(), " in the model (at byte ", found->offset,
           "). Load it with the configuration it was saved with.");
    }
  }
  for (const TensorEntry& entry : file.entries()) {
    if (!wanted.contains(entry.name)) {
      fail(Fault::data, name, ": the file holds ", shown(entry.name),
           ", which this model does not have (at byte ", entry.offset,
           "). Load it with the configuration it was saved with.");
    }
  }
}

void check_names(Module& module) {
  std::unordered_map<std::string, const Tensor*> tensors;
  visit_tensors(module, [&](const std::string& name, Tensor& tensor) {
    const auto [known, is_new] = tensors.emplace(name, &tensor);
    if (!is_new && identity(*known->second) != identity(tensor))
      fail("model: fields() names two tensors ", name, ", of shapes ", known->second->shape(), " and ",
           tensor.shape(), ". Give each a name of its own.");
  });
  std::unordered_map<std::string, Module*> children;
  visit_modules(module, [&](const std::string& name, Module& child) {
    const auto [known, is_new] = children.emplace(name, &child);
    if (!is_new && known->second != &child)
      fail("model: fields() names two modules ", name, ", of ", count_parameters(*known->second), " and ",
           count_parameters(child), " parameters. Give each a name of its own.");
  });
}

void check_listed(Module& module, const Tensor& loss) {
  std::unordered_map<const Node*, const Named*> listed;
  const std::vector<Named> all = parameters(module);
  if (!loss.node() && !all.empty())
    fail("model: the loss has no gradient, so it does not depend on the parameter ", all.front().name,
         " or any other. It was computed while a NoGrad lived, or of numbers or tensors taken off the tape: "
         "item(), to_host(), detach(), argmax(). Compute it by ops of the outputs.");
  for (const Named& named : all) listed[named.tensor->node().get()] = &named;
  std::vector<const Node*> pending{loss.node().get()};
  std::unordered_set<const Node*> seen;
  std::string stray;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const auto& input : node->inputs) {
      if (input && input->leaf && !listed.contains(input.get()))
        stray = text("an input ", input->shape, " of ", node->op);
      pending.push_back(input.get());
    }
  }
  for (const Named& named : all) {
    if (!seen.contains(named.tensor->node().get())) {
      fail("model: the loss does not depend on the parameter ", named.name, " ", named.tensor->shape(),
           ". Use it in forward(), or take it out of fields().");
    }
  }
  if (!stray.empty())
    fail("model: ", stray, " is a leaf that no module names. List it in the fields() of its module.");
}

}  // namespace heed
