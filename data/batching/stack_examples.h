// Examples stacked into one batch, padded where they are ragged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/data/batching/data_loader.h"

namespace heed {

/// The examples as tensors [B, ...] on the CPU, then the lengths i32 [B] of each padded one. `indices` are
/// the numbers of the examples, for errors: fails naming those whose tensors differ in number, type or shape.
std::vector<Tensor> stack_examples(std::span<const Example> examples, std::span<const int64_t> indices,
                                   std::span<const Padding> pad);

}  // namespace heed
