// One file over the network, by the curl program of the system.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace heed {

/// How a transfer is made.
struct TransferOptions {
  int64_t cap = int64_t{1} << 30;  ///< bytes; more are refused, and never lie on the disk
  int attempts = 5;                ///< times a broken transfer is taken up again where it broke
  std::string program = "curl";    ///< found on the PATH
};

/// Brings what the address holds into `part`; what is there already is kept and continued behind its end.
/// Returns whether that happened. Fault::file when the program is missing, the address cannot be reached or
/// has no such file (`part` goes), or the transfer breaks for good (`part` stays, to be continued).
bool transfer(const std::string& url, const Path& part, const TransferOptions& options = {});

}  // namespace heed
