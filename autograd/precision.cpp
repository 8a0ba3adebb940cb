// The precision in force, one a thread.
#include "autograd/precision.h"

namespace heed {
namespace {

thread_local Precision current = Precision::f32;

}  // namespace

ProductsIn::ProductsIn(Precision precision) : before_(current) { current = precision; }

ProductsIn::~ProductsIn() { current = before_; }

Precision product_precision() { return current; }

}  // namespace heed
