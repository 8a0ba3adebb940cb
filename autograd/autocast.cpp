// Autocast: the current rounding of products in each thread.
#include "heed/autograd/autocast.h"

namespace heed {
namespace {

thread_local Rounding current_rounding = Rounding::none;

}  // namespace

Autocast::Autocast(Rounding rounding) : rounding_(current_rounding, rounding) {}

Rounding product_rounding() { return current_rounding; }

}  // namespace heed
