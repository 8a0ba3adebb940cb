// A training step of every attention, captured as a CUDA graph and replayed, gives the bits of the step
// itself.
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

/// A training step on inputs of one length, in buffers that every step reuses, as a graph needs.
class Step {
 public:
  Step(const Setting& setting, Host& host, Rng& rng, int64_t queries, int64_t keys)
      : host_(host), rng_(rng), length_(queries) {
    const int64_t width = host.queries.extent(2);
    queries_ = leaf(Tensor::zeros(Shape{2, queries, width}, DType::f32, setting.device));
    keys_ =
        host.crosses() ? leaf(Tensor::zeros(Shape{2, keys, width}, DType::f32, setting.device)) : queries_;
  }

  /// Fills the input buffers with the random numbers of a step.
  void set_inputs(uint64_t step_number) {
    launch<kernel::Copy>(queries_.device(),
                         battery::numbers(queries_.shape(), 2 * step_number, DType::f32, queries_.device()),
                         queries_.detach());
    if (host_.crosses())
      launch<kernel::Copy>(keys_.device(),
                           battery::numbers(keys_.shape(), 2 * step_number + 1, DType::f32, keys_.device()),
                           keys_.detach());
  }
  void run() {
    host_.queries = queries_;
    host_.keys = keys_;
    host_.clear_gradients();
    AuxiliaryLosses losses;
    const Tensor y = host_.forward({.rng = &rng_, .losses = &losses});
    Tensor loss = mean(square(y));
    if (losses.waiting.empty() && !losses.list.empty()) loss = loss + losses.sum();
    backward(loss);
    // Captured steps share their memory, so results to be read after other steps are copied out of it.
    std::vector<Tensor> computed{y.detach()};
    for (const auto& [name, tensor] : host_.leaves()) computed.push_back(grad_of(tensor));
    results_.resize(computed.size());
    for (size_t n = 0; n < computed.size(); ++n) {
      const Tensor& tensor = computed[n];
      if (!tensor) continue;
      if (!results_[n]) results_[n] = Tensor::zeros(tensor.shape(), tensor.dtype(), tensor.device());
      launch<kernel::Copy>(tensor.device(), tensor, results_[n]);
    }
    host_.clear_gradients();
  }
  void capture() {
    if constexpr (built_with_cuda) {
      cuda::Capture capture;
      run();
      graph_ = capture.finish();
    }
  }
  void replay() {
    if constexpr (built_with_cuda) graph_->launch();
  }
  /// The output and all gradients of the last step.
  const std::vector<Tensor>& results() const { return results_; }
  int64_t length() const { return length_; }

 private:
  Host& host_;
  Rng& rng_;
  int64_t length_;
  Tensor queries_, keys_;
  std::vector<Tensor> results_;
  std::unique_ptr<cuda::Graph> graph_;
};

/// An attention that learns from steps of two lengths in turn, the shorter ones first.
struct Learner {
  Host host;
  Rng rng;
  Step small, large;

  explicit Learner(const Setting& setting)
      : host(battery::host_of(setting, {.queries = 37, .keys = 41, .dropout = 0.1})),
        rng(3, setting.device),
        small(setting, host, rng, 6, 9),
        large(setting, host, rng, 37, 41) {}

  /// Takes a step by run(step): computed, or captured and replayed.
  template <class Run>
  void take(Step& step, uint64_t step_number, const Run& run) {
    step.set_inputs(step_number);
    run(step);
    rng.advance();
  }
};

/// Compares steps that are captured and replayed to steps that are computed: two computed ones of each
/// length, one that is captured, and one replayed after the graph of the other length was captured.
Report replayed(const Setting& setting) {
  if (setting.device == Device::cpu) return {};
  const DefaultDevice default_device(setting.device);
  Report report;
  Learner computing(setting), replaying(setting);
  uint64_t step_number = 0;
  const auto compare = [&](Step Learner::*step, const auto& run) {
    computing.take(computing.*step, ++step_number, [](Step& computed) { computed.run(); });
    replaying.take(replaying.*step, step_number, run);
    const auto &expected = (computing.*step).results(), &found = (replaying.*step).results();
    for (size_t n = 0; n < expected.size(); ++n) {
      if (!expected[n] && !found[n]) continue;
      if (!expected[n] || !found[n] || !battery::same_bits(expected[n], found[n])) {
        battery::note(report, "step ", step_number, " of length ", (computing.*step).length(), ": ",
                      n == 0 ? text("the output") : text("gradient ", n), " is another");
      }
    }
  };
  for (const auto step : {&Learner::small, &Learner::large}) {
    for (int repeat = 0; repeat < 2; ++repeat) compare(step, [](Step& computed) { computed.run(); });
    compare(step, [](Step& captured) {
      captured.capture();
      captured.replay();
    });
  }
  for (const auto step : {&Learner::small, &Learner::large})
    compare(step, [](Step& captured) { captured.replay(); });
  return report;
}

bool no_device() {
  if (devices().size() > 1) return false;
  WARN("no device: " << why_no_cuda());
  return true;
}

/// Attentions whose steps cannot be captured, each with what the host reads in a step, as the error names it.
const std::map<std::string, std::string>& reasons() {
  static const std::string step = "the number of the step";
  static const std::map<std::string, std::string> all{
      {"performer", step}, {"performer_relu", step}, {"rff", step}, {"hard", "a random number"}};
  return all;
}

enum class Modes { main, others };

/// Checks every variant on the device, in its main mode (causal if it supports that) or in its others.
void check_every_attention(Modes modes) {
  for (const Variant& variant : variants()) {
    bool is_main = true;
    std::vector<Setting> all = battery::settings(variant);
    std::stable_partition(all.begin(), all.end(),
                          [](const Setting& setting) { return setting.mode == battery::Mode::causal; });
    for (const Setting& setting : all) {
      if (setting.device == Device::cpu || std::exchange(is_main, false) != (modes == Modes::main)) continue;
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
  if (!no_device()) check_every_attention(Modes::main);
}

TEST_CASE("replay: so is one of every attention in its other uses", "[slow]") {
  if (!no_device()) check_every_attention(Modes::others);
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
      const bool rotates = !by_distance(position);
      if (rotates && std::string(name) == "additive") continue;
      for (Setting setting : battery::settings(battery::with_options(name))) {
        if (setting.mode != battery::Mode::causal || setting.device == Device::cpu) continue;
        setting.modifiers = {.position = position,
                             .position_buckets = 8,
                             .position_span = 8,
                             .qk_norm = rotates ? QkNorm::rms : QkNorm::none,
                             .softcap = 5,
                             .sink = Sink::learned};
        CAPTURE(name, static_cast<int>(position), to_string(setting.mode));
        CHECK(replayed(setting) == "");
      }
    }
  }
}

}  // namespace heed
