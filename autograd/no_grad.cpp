// NoGrad and EnableGrad: each thread has a flag of its own.
#include "heed/autograd/no_grad.h"

namespace heed {
namespace {

thread_local bool is_recording = true;

}  // namespace

bool recording() { return is_recording; }

NoGrad::NoGrad() : recording_(is_recording, false) {}
EnableGrad::EnableGrad() : recording_(is_recording, true) {}

}  // namespace heed
