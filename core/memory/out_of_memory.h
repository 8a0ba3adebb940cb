// Which device ran out of memory.
#pragma once

#include "heed/core/device.h"

namespace heed {

/// The device whose memory ran out last.
Device last_shortage();

}  // namespace heed
