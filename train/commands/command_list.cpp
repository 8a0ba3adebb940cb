// The list of verbs.
#include "train/commands/verbs.h"

#include <array>

namespace heed {

std::span<const Verb> verbs() {
  static const std::array all{verb::train(),    verb::resume(),    verb::compare(),  verb::reproduce(),
                              verb::evaluate(), verb::translate(), verb::generate(), verb::inspect(),
                              verb::attend(),   verb::list(),      verb::show(),     verb::export_model(),
                              verb::env(),      verb::data(),      verb::bench()};
  return all;
}

}  // namespace heed
