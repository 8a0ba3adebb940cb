// The rounding in force, one a thread.
#include "autograd/rounding.h"

namespace heed {
namespace {

thread_local Rounding current = Rounding::none;

}  // namespace

ProductsRounded::ProductsRounded(Rounding rounding) : before_(current) { current = rounding; }

ProductsRounded::~ProductsRounded() { current = before_; }

Rounding product_rounding() { return current; }

}  // namespace heed
