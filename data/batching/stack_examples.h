// Examples stacked into one batch, padded where they are ragged.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/data/batching/data_loader.h"

namespace heed {

/// Stacks tensor i of all examples into [B, ...] on the CPU, for each i; the lengths i32 [B] of each padded
/// tensor follow. Fails naming the examples, by their `indices`, whose tensors differ in number, type or
/// shape. Takes at least one example.
std::vector<Tensor> stack_examples(std::span<const Example> examples, std::span<const int64_t> indices,
                                   std::span<const Padding> pad);

}  // namespace heed
