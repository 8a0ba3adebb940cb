// Copies kernel argument structs to a device, with the tensors they hold.
#pragma once

#include "heed/core/kernels/attention/local_attention.h"
#include "heed/core/kernels/attention/ntm_addressing.h"
#include "heed/core/kernels/content/tree_attention.h"
#include "heed/tests/any_device.h"
#include "heed/tests/core/kernels/tensors_on_device.h"

namespace heed {

inline kernel::AddressingTerms mirrored(Mirror& mirror, kernel::AddressingTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  return terms;
}

inline kernel::LocalTerms mirrored(Mirror& mirror, kernel::LocalTerms terms) {
  terms.key_lengths = mirror(terms.key_lengths);
  return terms;
}

inline kernel::TreeTerms mirrored(Mirror& mirror, kernel::TreeTerms terms) {
  terms.reach.key_lengths = mirror(terms.reach.key_lengths);
  terms.buds = mirror(terms.buds);
  terms.key_nodes = mirror(terms.key_nodes);
  terms.value_nodes = mirror(terms.value_nodes);
  return terms;
}

inline kernel::BudTerms mirrored(Mirror& mirror, kernel::BudTerms terms) {
  terms.reach.key_lengths = mirror(terms.reach.key_lengths);
  terms.draw = mirror(terms.draw);
  terms.draws = mirror(terms.draws);
  return terms;
}

}  // namespace heed
