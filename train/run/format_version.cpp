// Reads and checks a format version.
#include "heed/train/run/format_version.h"

namespace heed {

int64_t format_of(const Json& object, int64_t newest) {
  const Json* format = object.find("format");
  if (format == nullptr) return 1;
  if (!format->is_integer() || format->integer() < 1)
    fail(Fault::data, "its format is ", shown(format->dump()), ", and must be 1 to ", newest);
  if (format->integer() <= newest) return format->integer();
  const Json* version = object.find("heed");
  throw NewerFormat(text("was written by a newer heed (",
                         version != nullptr && version->is_text() ? shown(version->text()) + ", " : "",
                         "format ", format->integer(), "; this program reads up to ", newest, ")"));
}

}  // namespace heed
