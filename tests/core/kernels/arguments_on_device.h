// Copies kernel argument structs to a device, with the tensors they hold.
#pragma once

#include "heed/core/kernels/attention/local_attention.h"
#include "heed/core/kernels/attention/ntm_addressing.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/tensors_on_device.h"

namespace heed {

inline kernel::AddressingParams mirrored(Mirror& mirror, kernel::AddressingParams params) {
  params.key_lengths = mirror(params.key_lengths);
  return params;
}

inline kernel::LocalParams mirrored(Mirror& mirror, kernel::LocalParams params) {
  params.key_lengths = mirror(params.key_lengths);
  return params;
}

inline kernel::TreeParams mirrored(Mirror& mirror, kernel::TreeParams params) {
  params.visible.key_lengths = mirror(params.visible.key_lengths);
  params.buds = mirror(params.buds);
  params.key_nodes = mirror(params.key_nodes);
  params.value_nodes = mirror(params.value_nodes);
  return params;
}

inline kernel::BudParams mirrored(Mirror& mirror, kernel::BudParams params) {
  params.visible.key_lengths = mirror(params.visible.key_lengths);
  params.draw = mirror(params.draw);
  params.draws = mirror(params.draws);
  return params;
}

}  // namespace heed
