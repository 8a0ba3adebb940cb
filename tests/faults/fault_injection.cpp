// The search for the first value that is not finite.
#include "train/anomaly.h"

#include <algorithm>
#include <charconv>

#include "core/kernels/copy.h"
#include "core/launch.h"

namespace heed {
namespace {

[[noreturn]] void not_a_plant(const std::string& plan) {
  fail("test.plant = '", plan,
       "' is not legal. It takes parameter@STEP, input@STEP or gradient@STEP, and between them a parameter's "
       "name, nan, inf or -inf: gradient:decoder.norm.gain:inf@12.");
}

void put(const Tensor& x, double value) {
  const Tensor flat = view::reshape(x.detach(), Shape{x.size()});  // a view: what is planted into is dense
  const int64_t at = flat.size() / 2;
  launch<kernel::Fill>(x.device(), view::slice(flat, 0, at, at + 1), value);
}

const Named& chosen(const Plant& plant, const std::vector<Named>& all) {
  if (plant.name.empty()) return all[all.size() / 2];
  std::vector<std::string> names;
  for (const Named& one : all) {
    if (one.name == plant.name) return one;
    names.push_back(one.name);
  }
  const std::string near = nearest(plant.name, names);
  fail("test.plant: the model has no parameter '", plant.name, "'.",
       near.empty() ? text(" It has such as ", names[0], ".") : text(" Did you mean '", near, "'?"));
}

}  // namespace

Plant parse_plant(const std::string& plan) {
  Plant plant;
  if (plan.empty()) return plant;
  const size_t at = plan.rfind('@');
  if (at == std::string::npos) not_a_plant(plan);
  plant.on = plan.back() == '+';
  const char* end = plan.data() + plan.size() - (plant.on ? 1 : 0);
  const auto [last, fault] = std::from_chars(plan.data() + at + 1, end, plant.step);
  if (fault != std::errc() || last != end || plant.step < 1) not_a_plant(plan);
  std::vector<std::string> parts{""};
  for (const char c : plan.substr(0, at)) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  const std::vector<std::string> places{"nowhere", "parameter", "input", "gradient"};
  const auto place = std::find(places.begin() + 1, places.end(), parts[0]);
  if (place == places.end()) not_a_plant(plan);
  plant.where = static_cast<Plant::Where>(place - places.begin());
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "nan")
      plant.value = NAN;
    else if (parts[i] == "inf")
      plant.value = HUGE_VAL;
    else if (parts[i] == "-inf")
      plant.value = -HUGE_VAL;
    else if (parts[i].empty() || !plant.name.empty() || plant.where == Plant::Where::input)
      not_a_plant(plan);
    else
      plant.name = parts[i];
  }
  return plant;
}

void plant_parameter(const Plant& plant, Module& module) {
  const Tensor& x = *chosen(plant, parameters(module)).tensor;
  put(x, plant.value);
  ++x.storage()->version;
}

void plant_gradient(const Plant& plant, Module& module) {
  const Tensor gradient = grad_of(*chosen(plant, parameters(module)).tensor);
  if (gradient) put(gradient, plant.value);
}

void plant_input(const Plant& plant, Batch& batch) {
  for (Tensor& x : batch.tensors) {
    if (!is_float(x.dtype())) continue;
    put(x, plant.value);
    return;
  }
  fail("test.plant = input: the batches of this task hold whole numbers only, which are always finite. ",
       "Plant into a parameter or a gradient, or take the task mnist.");
}

Trace::Name names_in(Module& module) {
  return [&module](const void* part) {
    const std::string name = name_of(module, part);
    return name.empty() ? std::string("the loss") : name;
  };
}

std::string find_bad_value(Module& module, StepBatches& batches, const std::vector<std::string>& parts,
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
          first_bad_value(batch.tensors[i], "the input", text(parts.at(i), " of the batch"));
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
  return "every value was finite when the step was computed again; suspect the machine's memory";
}

}  // namespace heed
