// Defaults of the functions of Task.
#include "heed/train/tasks/task.h"

#include "heed/autograd/tape.h"

namespace heed {

Evaluation Task::test(Module& model, const DecodeOptions&) const {
  const NoGrad no_grad;
  Evaluation result;
  result.scores = validate(model);
  result.notes = {"scores of the validation split: the task has no test split"};
  return result;
}

Batch Task::shard(int64_t position, const BatchShard& shard) const {
  Batch whole = batch(position);
  const int64_t rows = whole.tensors.at(0).extent(0);
  Batch out;
  out.rows = shard.of(rows);
  out.whole_weight = whole.weight;
  const auto [first, count] = out.rows;
  out.weight = whole.weight * static_cast<double>(count) / static_cast<double>(rows);
  out.tokens = whole.tokens * count / rows;
  for (const Tensor& x : whole.tensors) {
    if (x.extent(0) != rows)
      fail(Fault::internal, "task: a batch of ", rows, " rows has a tensor ", x.shape(),
           ", which this task must share out itself.");
    if (count > 0) out.tensors.push_back(view::slice(x, 0, first, first + count));
  }
  return out;
}

std::string tensor_name(const std::vector<std::string>& names, size_t index) {
  return index < names.size() ? names[index] : text("tensor_", index);
}

}  // namespace heed
