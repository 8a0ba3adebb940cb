// A logit lens as a table for a terminal, as JSON, and as an offline page.
#pragma once

#include <string>

#include "heed/attention/inspect/lens_view.h"
#include "heed/attention/inspect/map_text.h"

namespace heed {

/// A row for each position, a column for each layer: the most probable token and its probability in percent.
/// A token that the last layer predicts too is marked by "=". Wide tables are split into blocks of layers.
std::string lens_text(const LensView& lens, const TextOptions& options = {});

/// One object: caption, layers, tokens, next, and cells [layers][positions] with `best` (token and
/// probability), `final_probability` and `entropy` in nats.
std::string lens_json(const LensView& lens);

/// A self-contained page: a cell for each layer and position.
std::string lens_page(const LensView& lens, const std::string& title);

}  // namespace heed
