// Runs the battery on the options of score variants.
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using battery::with_options;

void hold_everything(const Variant& variant, const std::string& but = "") {
  for (const battery::Property& property : battery::properties()) {
    if (property.name == but) continue;
    CAPTURE(property.name);
    const battery::Report report = battery::over_all_settings(variant, property.holds);
    INFO(report);
    CHECK(report.empty());
  }
}

}  // namespace

TEST_CASE("battery of options: additive without its extras", "[battery][scores]") {
  hold_everything(with_options("additive:bias=false,scale=0.7"));
  hold_everything(with_options("additive:hidden=3"), "cost");  // which then does not follow the width
  hold_everything(with_options("additive:project_keys=false"));
}

TEST_CASE("battery of options: cosine with a predicted sharpness", "[battery][scores]") {
  hold_everything(with_options("cosine:predict=true"));
}

TEST_CASE("battery of options: cosine with the whole addressing", "[battery][scores]") {
  for (const char* spec : {"cosine:gate=true,shift=1,sharpen=true", "cosine:gate=true", "cosine:shift=2"}) {
    CAPTURE(spec);
    Variant variant = with_options(spec);
    variant.traits.memory = {.length = 2, .width = 0};
    const bool shifts = std::string(spec).find("shift") != std::string::npos;
    variant.traits.last_row = false;                 // a row follows those before it
    hold_everything(variant, shifts ? "cost" : "");  // shifts cost the same for any width
  }
}

TEST_CASE("battery of options: local_p in the code's convention, general", "[battery][scores]") {
  hold_everything(with_options("local_p:convention=code,score=general,window=6"));
  hold_everything(with_options("local_p:gauss=pre_score,window=6"));
}

TEST_CASE("battery of options: local_m with a matrix between", "[battery][scores]") {
  hold_everything(with_options("local_m:score=general,window=6"), "cost");  // the matrix is not linear in d
}

TEST_CASE("battery of options: hard over other scores", "[battery][scores]") {
  hold_everything(with_options("hard:score=general,mode=expect"));
  hold_everything(with_options("hard:score=softmax,temperature=2"));
}

TEST_CASE("battery of options: synthesizer in each mode", "[battery][scores]") {
  for (const char* mode : {"random", "dense", "factorized_dense", "dense+random"})
    hold_everything(with_options(std::string("synthesizer:mode=") + mode), "cost");
  hold_everything(with_options("synthesizer:mode=random,dot_product=true"), "cost");
  hold_everything(with_options("synthesizer:mode=dense,dot_product=true"), "cost");
}

TEST_CASE("battery of options: kernels", "[battery][scores]") {
  hold_everything(with_options("kernel:kernel=taylor,degree=2"));
  hold_everything(with_options("kernel:kernel=taylor,degree=4"),
                  "cost");  // powers cost the same for any width
  hold_everything(with_options("kernel:kernel=exp,symmetric=true"));
  Variant odd = with_options("kernel:kernel=poly,degree=3,offset=9");  // far from where sums vanish
  odd.traits.map = MapKind::signed_;
  hold_everything(odd);
}

}  // namespace heed
