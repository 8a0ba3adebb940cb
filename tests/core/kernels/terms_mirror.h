// Terms of kernels on another device: the tensors that they hold are copied there.
#pragma once

#include "core/kernels/addressing.h"
#include "core/kernels/local_attention.h"
#include "core/kernels/tree_attention.h"
#include "tests/any_device.h"

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
