// Downloads one file with the system's curl program.
#pragma once

#include <cstdint>
#include <string>

#include "heed/core/error.h"

namespace heed {

/// Settings of a transfer.
struct TransferOptions {
  int64_t cap = int64_t{1} << 30;  ///< maximum bytes; larger files are refused and never fully on disk
  int attempts = 5;                ///< how often to continue a broken transfer
  std::string program = "curl";    ///< searched on the PATH
};

/// Downloads `url` into `part`, continuing an existing part. Returns whether it continued one. Fault::file
/// when the program is missing, the address cannot be reached or has no such file (removes `part`), or the
/// transfer breaks for good (keeps `part`, to continue later).
bool transfer(const std::string& url, const Path& part, const TransferOptions& options = {});

}  // namespace heed
