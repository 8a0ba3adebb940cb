// Battery: options survive conversion to text and back, and parameters saving and loading.
#include "heed/nn/init.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {

Report round_trip(const Setting& setting) {
  Report report;
  const Variant& variant = setting.variant;
  const auto with_all_options = [&](const Spec& spec) {
    Spec full{spec.name, {}};
    for (const OptionText& option : variant.options(spec))
      full.options.emplace_back(option.name, option.value);
    return to_string(full);
  };
  const std::string written = with_all_options({variant.traits.name, {}});
  const std::string rewritten = with_all_options(parse_spec(written));
  if (written != rewritten) note(report, "options read back as ", rewritten, " instead of ", written);

  const NoGrad no_grad;
  const Host saved = host_of(setting, {});
  Host loaded = host_of(setting, {});  // with the inputs of `saved`, but an attention of another seed
  loaded.attention = host_of(setting, {}, DType::f32, 2).attention;
  if (same_bits(loaded.forward(), saved.forward())) note(report, "another seed gives the same attention");
  {  // parameters that are not drawn are those of a file, and whatever else is drawn is as ever
    const SkipInit skips;
    loaded.attention = host_of(setting, {}, DType::f32, 2).attention;
  }
  load_bytes(*loaded.attention, save_bytes(*saved.attention));
  if (!same_bits(loaded.forward(), saved.forward())) {
    note(report, "a saved attention loaded into another gives another output, off by ",
         distance(loaded.forward(), saved.forward()));
  }
  if (save_bytes(*loaded.attention) != save_bytes(*saved.attention))
    note(report, "saved again, the bytes differ");
  return report;
}

}  // namespace heed::battery
