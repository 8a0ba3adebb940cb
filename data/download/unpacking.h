// What unpacking corpora has in common: saying whether a number is the published one.
#pragma once

#include "data/download.h"

namespace heed {

/// Says how a number that was counted compares with the published one; whether they agree.
inline bool as_published(const DownloadOptions& options, std::string_view what, int64_t found,
                         int64_t known) {
  if (options.say)
    options.say(text(what, ": ", found, found == known ? ", as published" : text("; published: ", known)));
  return found == known;
}

}  // namespace heed
