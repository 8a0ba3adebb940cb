// Finds the first value of a step that is not finite.
#include "heed/train/loop/find_non_finite.h"

#include "heed/autograd/tape.h"

namespace heed {
namespace {

/// Describes the first value of these tensors that is not finite; empty where there is none.
std::string first_bad_of(const std::vector<Named>& all, const char* kind) {
  for (const Named& named : all) {
    const std::string found = first_bad_value(*named.tensor, named.name, kind);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

Trace::Name names_in(Module& module) {
  return [&module](const void* part) {
    const std::string name = name_of(module, part);
    return name.empty() ? std::string("the loss") : name;
  };
}

std::vector<Named> buffers(Module& module) {
  std::vector<Named> all = tensors(module);
  std::erase_if(all, [](const Named& named) { return named.tensor->node() != nullptr; });
  return all;
}

std::string find_bad_buffer(Module& module) { return first_bad_of(buffers(module), "a buffer"); }

std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& names,
                           const std::function<void()>& recompute) {
  const std::vector<Named> all = parameters(module);
  if (std::string found = first_bad_of(all, "a parameter"); !found.empty()) return found;
  for (int64_t number = 0; number < batches.count(); ++number) {
    const Batch batch = batches.at(number);
    for (size_t i = 0; i < batch.tensors.size(); ++i) {
      const std::string found =
          first_bad_value(batch.tensors[i], "the input", text(tensor_name(names, i), " of the batch"));
      if (!found.empty()) return found;
    }
  }
  try {
    const Trace trace(names_in(module));
    recompute();
  } catch (const NotFinite& error) {
    return error.sentence();
  }
  for (const Named& parameter : all) {
    const Tensor gradient = grad_of(*parameter.tensor);
    if (!gradient) continue;
    const std::string found =
        first_bad_value(gradient, "the gradient of " + parameter.name, "summed over the step");
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace heed
