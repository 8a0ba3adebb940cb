// Checks the attention of an encoder against what its tokens may look at.
#include "heed/train/tasks/causal_encoder.h"

#include "heed/attention/layered_spec.h"
#include "heed/attention/variant.h"

namespace heed {

void check_encoder_attention(const Config& config, bool causal, const char* setting) {
  for (const std::string& spec : parse_layered_spec(config.attention.encoder).all()) {
    const Traits& traits = variant_named(parse_spec(spec).name).traits;
    if (causal && !traits.causal) {
      fail("attention '", traits.name, "' cannot look back only, which ", setting,
           " asks for. Take that out, or choose another attention.");
    }
    if (!causal && !traits.full) {
      fail("attention '", traits.name, "' looks back only, and this encoder looks both ways. Add --causal ",
           "true, or choose another attention.");
    }
  }
}

}  // namespace heed
