// A captured and replayed training step of every attention is bit-identical on a device.
#include <algorithm>
#include <map>
#include <utility>

#include "heed/core/cuda/runtime/graph.h"
#include "heed/core/kernels/elementwise/copy.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using battery::Host;
using battery::Report;
using battery::Setting;

/// A step of training on inputs of one length, which lie at fixed places.
class Step {
 public:
  Step(const Setting& setting, Host& host, Rng& noise, int64_t queries, int64_t keys)
      : host_(host), noise_(noise), length_(queries) {
    const int64_t width = host.queries.extent(2);
    queries_ = leaf(Tensor::zeros(Shape{2, queries, width}, DType::f32, setting.device));
    keys_ =
        host.crosses() ? leaf(Tensor::zeros(Shape{2, keys, width}, DType::f32, setting.device)) : queries_;
  }

  /// The inputs of a step of that number.
  void feed(uint64_t number) {
    launch<kernel::Copy>(queries_.device(),
                         battery::numbers(queries_.shape(), 2 * number, DType::f32, queries_.device()),
                         queries_.detach());
    if (host_.crosses())
      launch<kernel::Copy>(keys_.device(),
                           battery::numbers(keys_.shape(), 2 * number + 1, DType::f32, keys_.device()),
                           keys_.detach());
  }
  void run() {
    host_.queries = queries_;
    host_.keys = keys_;
    host_.clear_gradients();
    AuxiliaryLosses terms;
    const Tensor y = host_.forward({.rng = &noise_, .losses = &terms});
    Tensor loss = mean(square(y));
    if (terms.waiting.empty() && !terms.list.empty()) loss = loss + terms.sum();
    backward(loss);
    // Recorded steps share their memory: what is to be read after other steps lies elsewhere.
    std::vector<Tensor> found{y.detach()};
    for (const auto& [name, tensor] : host_.leaves()) found.push_back(grad_of(tensor));
    results_.resize(found.size());
    for (size_t n = 0; n < found.size(); ++n) {
      if (!found[n]) continue;
      if (!results_[n]) results_[n] = Tensor::zeros(found[n].shape(), found[n].dtype(), found[n].device());
      launch<kernel::Copy>(found[n].device(), found[n], results_[n]);
    }
    host_.clear_gradients();
  }
  void record() {
    if constexpr (built_with_cuda) {
      cuda::Capture capture;
      run();
      graph_ = capture.finish();
    }
  }
  void replay() {
    if constexpr (built_with_cuda) graph_->launch();
  }
  const std::vector<Tensor>& results() const { return results_; }
  int64_t length() const { return length_; }

 private:
  Host& host_;
  Rng& noise_;
  int64_t length_;
  Tensor queries_, keys_;
  std::vector<Tensor> results_;
  std::unique_ptr<cuda::Graph> graph_;
};

/// An attention that learns from steps of two lengths in turn, the shorter ones first.
struct Learner {
  Host host;
  Rng noise;
  Step small, large;

  explicit Learner(const Setting& setting)
      : host(battery::host_of(setting, {.queries = 37, .keys = 41, .dropout = 0.1})),
        noise(3, setting.device),
        small(setting, host, noise, 6, 9),
        large(setting, host, noise, 37, 41) {}

  template <class How>
  void take(Step& step, uint64_t number, const How& how) {
    step.feed(number);
    how(step);
    noise.advance();
  }
};

/// Why a step is not recorded, or what differs where it is.
Report replayed(const Setting& setting) {
  if (setting.device == Device::cpu) return {};
  const DefaultDevice here(setting.device);
  Report report;
  Learner plain(setting), again(setting);
  uint64_t number = 0;
  const auto both = [&](Step Learner::*step, const auto& how) {
    plain.take(plain.*step, ++number, [](Step& one) { one.run(); });
    again.take(again.*step, number, how);
    const auto &wanted = (plain.*step).results(), &found = (again.*step).results();
    for (size_t n = 0; n < wanted.size(); ++n) {
      if (!wanted[n] && !found[n]) continue;
      if (!wanted[n] || !found[n] || !battery::same_bits(wanted[n], found[n])) {
        battery::note(report, "step ", number, " of length ", (plain.*step).length(), ": ",
                      n == 0 ? text("the output") : text("gradient ", n), " is another");
      }
    }
  };
  for (const auto step : {&Learner::small, &Learner::large}) {
    for (int turn = 0; turn < 2; ++turn) both(step, [](Step& one) { one.run(); });
    both(step, [](Step& one) {
      one.record();
      one.replay();
    });
  }
  for (const auto step : {&Learner::small, &Learner::large}) both(step, [](Step& one) { one.replay(); });
  return report;
}

bool no_device() {
  if (devices().size() > 1) return false;
  WARN("no device: " << why_no_cuda());
  return true;
}

/// What is decided on the host anew, in each step or whenever so many steps have passed.
const std::map<std::string, std::string>& reasons() {
  static const std::string step = "the number of the step";
  static const std::map<std::string, std::string> all{
      {"performer", step}, {"performer_relu", step}, {"rff", step}, {"hard", "a random number"}};
  return all;
}

/// Settings on the device: of each variant one, with a mask if it can have one; or the others.
void every_attention(bool others) {
  for (const Variant& variant : variants()) {
    bool first = true;
    std::vector<Setting> all = battery::settings(variant);
    std::stable_partition(all.begin(), all.end(),
                          [](const Setting& one) { return one.mode == battery::Mode::causal; });
    for (const Setting& setting : all) {
      if (setting.device == Device::cpu || std::exchange(first, false) == others) continue;
      CAPTURE(variant.traits.name, to_string(setting.mode));
      std::string report;
      try {
        report = replayed(setting);
      } catch (const Error& error) {
        report = error.what();
      }
      const auto reason = reasons().find(variant.traits.name);
      if (reason == reasons().end()) {
        CHECK(report == "");
      } else {
        CHECK_THAT(report, containing(reason->second));
      }
    }
  }
}

}  // namespace

TEST_CASE("replay: a training step of every attention is recorded, and replayed with the same bits") {
  if (!no_device()) every_attention(false);
}

TEST_CASE("replay: so is one of every attention in its other uses", "[slow]") {
  if (!no_device()) every_attention(true);
}

TEST_CASE("replay: steps of attentions with other options are recorded") {
  if (no_device()) return;
  for (const char* spec :
       {"performer:redraw=0", "hard:mode=straight_through", "structured:eps=0.1,density=0.2",
        "structured:start=uniform,eps=0.1", "band_sparse_error:density=0.2,width=3",
        "bigbird:block=4,random=2", "hat:segment=4,segments=16", "h_transformer:block=4,bias=true",
        "sinkhorn:block=4", "reformer:rounds=2,chunk=5,buckets=2", "routing:clusters=3,window=4"}) {
    const Setting setting = battery::settings(battery::with_options(spec)).back();  // on the device
    CAPTURE(spec, to_string(setting.mode));
    CHECK(replayed(setting) == "");
  }
}

TEST_CASE("replay: steps with each position, norm, cap and sink are recorded") {
  if (no_device()) return;
  for (const char* name : {"softmax", "additive"}) {
    for (const PositionKind position :
         {PositionKind::rope, PositionKind::rope_interleaved, PositionKind::alibi, PositionKind::t5,
          PositionKind::shaw, PositionKind::shaw_keys}) {
      const bool turns = !by_distance(position);
      if (turns && std::string(name) == "additive") continue;
      for (Setting setting : battery::settings(battery::with_options(name))) {
        if (setting.mode != battery::Mode::causal || setting.device == Device::cpu) continue;
        setting.modifiers = {.position = position,
                             .position_buckets = 8,
                             .position_span = 8,
                             .qk_norm = turns ? QkNorm::rms : QkNorm::none,
                             .softcap = 5,
                             .sink = Sink::learned};
        CAPTURE(name, static_cast<int>(position), to_string(setting.mode));
        CHECK(replayed(setting) == "");
      }
    }
  }
}

}  // namespace heed
