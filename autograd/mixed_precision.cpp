// Autocast: the rounding of products that is in force in each thread.
#include "heed/autograd/mixed_precision.h"

namespace heed {
namespace {

thread_local Rounding current = Rounding::none;

}  // namespace

Autocast::Autocast(Rounding rounding) : before_(current) { current = rounding; }

Autocast::~Autocast() { current = before_; }

Rounding product_rounding() { return current; }

}  // namespace heed
