// Finds the first value of a step that is not finite.
#include "heed/train/loop/find_non_finite.h"

#include "heed/autograd/tape.h"

namespace heed {
Trace::Name names_in(Module& module) {
  return [&module](const void* part) {
    const std::string name = name_of(module, part);
    return name.empty() ? std::string("the loss") : name;
  };
}

std::vector<Named> buffers(Module& module) {
  std::vector<Named> all = tensors(module);
  std::erase_if(all, [](const Named& one) { return one.tensor->node() != nullptr; });
  return all;
}

std::string find_bad_buffer(Module& module) {
  for (const Named& one : buffers(module)) {
    const std::string found = first_bad_value(*one.tensor, one.name, "a buffer");
    if (!found.empty()) return found;
  }
  return {};
}

std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& names,
                           const std::function<void()>& again) {
  const std::vector<Named> all = parameters(module);
  for (const Named& one : all) {
    const std::string found = first_bad_value(*one.tensor, one.name, "a parameter");
    if (!found.empty()) return found;
  }
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
    again();
  } catch (const NotFinite& error) {
    return error.sentence();
  }
  for (const Named& one : all) {
    const Tensor gradient = grad_of(*one.tensor);
    if (!gradient) continue;
    const std::string found =
        first_bad_value(gradient, "the gradient of " + one.name, "summed over the step");
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace heed
