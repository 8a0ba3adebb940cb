// Autocast: the rounding of products that is in force in each thread.
#include "heed/autograd/autocast.h"

namespace heed {
namespace {

thread_local Rounding current_weights = Rounding::none;

}  // namespace

Autocast::Autocast(Rounding rounding) : before_(current_weights) { current_weights = rounding; }

Autocast::~Autocast() { current_weights = before_; }

Rounding product_rounding() { return current_weights; }

}  // namespace heed
