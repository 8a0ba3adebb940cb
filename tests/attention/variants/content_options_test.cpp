// Runs the battery on attentions that select by content or mix positions, with options that split a short
// input into many small parts.
#include "heed/tests/attention/battery/battery.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

/// Everything but the growth of costs, which starts later for small parts. Where an output depends on the
/// rest of its batch, a padded row is not the row alone: the properties that look at that must say so.
/// `but`: one more property that these options do not have.
void hold_everything(const std::string& spec, bool alone = true, const std::string& but = "") {
  CAPTURE(spec);
  const Variant variant = battery::with_options(spec);
  for (const battery::Property& property : battery::properties()) {
    const std::string name = property.name;
    if (name == "cost" || name == but) continue;
    if (!alone && (name == "padding" || name == "modifiers")) {
      CHECK_THAT(battery::over_all_settings(variant, property.holds),
                 containing("differs by") && containing("from the row alone"));
      continue;
    }
    CAPTURE(property.name);
    const battery::Report report = battery::over_all_settings(variant, property.holds);
    INFO(report);
    CHECK(report.empty());
  }
}

}  // namespace

TEST_CASE("battery of options: reformer in many chunks and rounds", "[battery][reformer]") {
  hold_everything("reformer:rounds=3,chunk=4,buckets=4");
  hold_everything("reformer:rounds=1,chunk=7,buckets=6,ring=false");
  hold_everything("reformer:rounds=2,chunk=5,buckets=2,once=true");
}

TEST_CASE("battery of options: longformer with global tokens here and there", "[battery][longformer]") {
  // A decoder has no global tokens, so its last row is another one.
  hold_everything("longformer:window=2,global=0/5", true, "last row");
  hold_everything("longformer:window=1,global=3/4/9", true, "last row");
  hold_everything("longformer:window=64,global=2/");
}

TEST_CASE("battery of options: informer with few exact queries", "[battery][informer]") {
  hold_everything("informer:factor=1");
  hold_everything("informer:factor=1,lazy=mean");
}

TEST_CASE("battery of options: linformer by what is shared", "[battery][linformer]") {
  hold_everything("linformer:k=3,sharing=none");
  hold_everything("linformer:k=3,sharing=key_value");
  hold_everything("linformer:k=3,sharing=layerwise");
}

TEST_CASE("battery of options: nystromformer with few landmarks", "[battery][nystromformer]") {
  hold_everything("nystromformer:landmarks=4");
  hold_everything("nystromformer:landmarks=8,segment=25");
}

TEST_CASE("battery of options: nystromformer's original start", "[battery][nystromformer]") {
  hold_everything("nystromformer:landmarks=4,init=original", false);
}

TEST_CASE("battery of options: skyformer with few samples, and its original start", "[battery][skyformer]") {
  hold_everything("skyformer:features=6");
  hold_everything("skyformer:features=6,init=original", false);
}

TEST_CASE("battery of options: h_transformer with a bias", "[battery][h_transformer]") {
  hold_everything("h_transformer:bias=true,block=4");
}

TEST_CASE("battery of options: structured and banded maps with errors", "[battery][structured]") {
  hold_everything("structured:width=3,eps=0.2,density=0.3");
  hold_everything("structured:start=uniform,eps=0.2");
  hold_everything("structured:start=diagonal");
  hold_everything("band_project:width=3,renormalise=true");
  hold_everything("band_sparse_error:width=3,eps=0.05,density=0.3");
}

TEST_CASE("battery of options: a window with sinks", "[battery][window]") {
  hold_everything("window:left=5,right=3,first=2");
}

TEST_CASE("battery of options: the patterns of the Sparse Transformer around a first token",
          "[battery][strided][fixed]") {
  hold_everything("strided:stride=3,cls=true");
  hold_everything("strided:stride=3,look=back,usage=multihead");
  hold_everything("fixed:block=3,summary=1,cls=true,look=back");
}

TEST_CASE("battery of options: routing and sinkhorn in small parts", "[battery][routing][sinkhorn]") {
  hold_everything("routing:clusters=5,window=3");
  hold_everything("sinkhorn:block=3,iterations=3");
}

}  // namespace heed
