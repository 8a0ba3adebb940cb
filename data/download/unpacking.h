// Compares counts of an unpacked corpus with published numbers.
#pragma once

#include "heed/data/download/download.h"

namespace heed {

/// Logs a count and the published one; returns whether they are equal.
inline bool as_published(const DownloadOptions& options, std::string_view what, int64_t found,
                         int64_t known) {
  if (options.say)
    options.say(text(what, ": ", found, found == known ? ", as published" : text("; published: ", known)));
  return found == known;
}

}  // namespace heed
