// The entries of the list of verbs; each is defined in the file of its name.
#pragma once

#include "train/commands/verb.h"

namespace heed::verb {
Verb train();
Verb resume();
Verb compare();
Verb reproduce();
Verb evaluate();
Verb translate();
Verb generate();
Verb inspect();
Verb attend();
Verb list();
Verb show();
Verb export_model();
Verb env();
Verb data();
Verb bench();
}  // namespace heed::verb
