// Whose memory it was that ran out.
#pragma once

#include "core/device.h"

namespace heed {

/// The device whose memory ran out last.
Device last_shortage();

}  // namespace heed
