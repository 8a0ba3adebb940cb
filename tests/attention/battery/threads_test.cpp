// Tests that several threads may use one attention, and one model, at once: the bits are those of one thread.
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "heed/nn/seq2seq.h"
#include "heed/nn/transformer.h"
#include "heed/tests/attention/battery/kit.h"
#include "heed/tests/catch.h"

namespace heed {
namespace {

using battery::Host;
using battery::Mode;
using battery::note;
using battery::Report;
using battery::Setting;

constexpr int rounds = 6;
constexpr int64_t max_length = 96;
/// The length that each thread computes: different ones, so that threads need different patterns and tables.
constexpr std::array<int64_t, 4> lengths{11, 40, 71, max_length};

/// The outputs of one thread's calls: all positions in one call, then one after the other with a cache.
std::vector<Tensor> outputs_of(Attention& attention, const Setting& setting, int64_t length) {
  const NoGrad no_grad;
  const auto seed = static_cast<uint64_t>(length);
  Host host{.setting = setting, .attention = nullptr, .queries = battery::numbers(Shape{2, length, 8}, seed)};
  host.keys = host.crosses() ? battery::numbers(Shape{2, max_length, 8}, seed + 1) : host.queries;
  if (setting.variant.traits.padding)
    host.lengths = battery::lengths_of(
        {static_cast<int32_t>(host.keys.extent(1)), static_cast<int32_t>(length / 2)}, Device::cpu);
  std::vector<Tensor> out{attention.forward(host.input())};
  const auto cache = setting.mode == Mode::self ? nullptr : attention.new_cache();
  for (int64_t t = 0; cache && t < length; ++t) {
    AttentionInput step{.queries = battery::positions(host.queries, t, t + 1), .mask = host.mask()};
    step.cache = cache.get();
    if (!host.crosses())
      step.keys = step.queries;
    else if (t == 0)
      step.keys = host.keys;
    out.push_back(attention.forward(step));
  }
  return out;
}

/// Runs job(0) to job(count - 1) in a thread each, which start together; rethrows the first error.
void run_at_once(size_t count, const std::function<void(size_t)>& job) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> ready = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (++ready; ready < count;) std::this_thread::yield();
      try {
        job(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

using Outputs = std::array<std::vector<Tensor>, lengths.size()>;  // tensors of the calls of each thread

/// Compares threads that share one attention to calls of one thread alone.
Report shared(const Setting& setting) {
  const battery::Sizes sizes{.batch = 2, .queries = max_length, .keys = max_length};
  const Host alone = battery::host_of(setting, sizes);
  Outputs expected, found;
  for (size_t i = 0; i < lengths.size(); ++i) expected[i] = outputs_of(*alone.attention, setting, lengths[i]);
  Report report;
  for (int round = 0; round < rounds; ++round) {
    const Host together = battery::host_of(setting, sizes);  // its patterns and tables are not computed yet
    run_at_once(lengths.size(),
                [&](size_t i) { found[i] = outputs_of(*together.attention, setting, lengths[i]); });
    for (size_t i = 0; i < lengths.size(); ++i) {
      for (size_t n = 0; n < expected[i].size(); ++n) {
        if (!battery::same_bits(found[i].at(n), expected[i][n]))
          note(report, "call ", n, " over ", lengths[i], " positions gives other bits beside other threads");
      }
    }
  }
  return report;
}

void check_shared(const Variant& variant) {
  for (Setting setting : battery::settings(variant)) {
    if (setting.device != Device::cpu) continue;
    for (const PositionKind kind : {PositionKind::none, PositionKind::rope}) {
      setting.modifiers.position = kind;
      try {
        battery::host_of(setting, {});
      } catch (const Error&) {
        continue;  // this attention takes no rope
      }
      INFO(variant.traits.name << ", " << to_string(setting.mode)
                               << (kind == PositionKind::rope ? ", rope" : ""));
      CHECK(shared(setting) == "");
    }
  }
}

/// The logits of each decoding step: `steps` tokens, which depend on `seed`, from `state` on.
std::vector<Tensor> decoded(const AutoregressiveModel& model, Decoding state, int64_t steps, int32_t seed) {
  std::vector<Tensor> out;
  for (int32_t t = 0; t < steps; ++t) {
    const std::vector<int32_t> ids{(seed + 3 * t) % 11, (seed + 5 * t) % 11};
    out.push_back(model.next(Tensor::of<int32_t>(ids, Shape{2, 1}), state));
  }
  return out;
}

Tensor source_ids(int64_t length, int32_t seed) {
  std::vector<int32_t> ids;
  for (int32_t n = 0; n < 2 * length; ++n) ids.push_back((seed + 7 * n) % 11);
  return Tensor::of<int32_t>(ids, Shape{2, length});
}

std::vector<Tensor> translated(const TranslationModel& model, int64_t length) {
  const NoGrad no_grad;
  const auto seed = static_cast<int32_t>(length);
  const Tensor ids = source_ids(length, seed), real = battery::lengths_of({seed, seed / 2}, Device::cpu);
  const Tensor encoded = model.encode(ids, real, {});
  std::vector<Tensor> out = decoded(model, model.start(encoded, real), length, seed);
  out.push_back(model.logits(model.decode(ids, encoded, real, {})));
  return out;
}

/// The outputs of a model for inputs of one length.
using OutputsOfLength = std::function<std::vector<Tensor>(int64_t length)>;

/// Compares threads that share the model of `together` to one thread with the equal model of `alone`.
void check_sharing(const OutputsOfLength& alone, const OutputsOfLength& together) {
  Outputs found;
  run_at_once(lengths.size(), [&](size_t i) { found[i] = together(lengths[i]); });
  for (size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<Tensor> expected = alone(lengths[i]);
    for (size_t n = 0; n < expected.size(); ++n) {
      CAPTURE(lengths[i], n);
      CHECK(battery::same_bits(found[i].at(n), expected[n]));
    }
  }
}

void check_translations(const TranslationModel& alone, const TranslationModel& together) {
  check_sharing([&](int64_t length) { return translated(alone, length); },
                [&](int64_t length) { return translated(together, length); });
}

TransformerConfig small(PositionKind position) {
  return {.d_model = 16, .heads = 2, .d_ff = 32, .layers = 2, .max_length = max_length, .position = position};
}

}  // namespace

#define VARIANT(name) \
  TEST_CASE(#name ": threads may share it", "[battery][threads]") { check_shared(variant::name()); }
#include "heed/attention/variants.def"
#undef VARIANT

TEST_CASE("threads: transformers translate for several at once", "[threads]") {
  for (const PositionKind position :
       {PositionKind::sinusoid, PositionKind::learned, PositionKind::rope, PositionKind::rope_interleaved,
        PositionKind::alibi, PositionKind::t5}) {
    CAPTURE(static_cast<int>(position));
    const auto made = [&] {
      Rng rng(1);
      const auto own = attention_factory("softmax");
      return EncoderDecoder(small(position), 11, 11, {own, own, attention_factory("additive")}, rng);
    };
    const EncoderDecoder alone = made(), together = made();
    check_translations(alone, together);
  }
}

TEST_CASE("threads: recurrent networks translate for several at once", "[threads]") {
  const auto made = [] {
    Rng rng(1);
    return Seq2Seq(small(PositionKind::none), {}, 11, 11, attention_factory("additive"), rng);
  };
  const Seq2Seq alone = made(), together = made();
  check_translations(alone, together);
}

TEST_CASE("threads: a language model continues several texts at once", "[threads]") {
  for (const char* attention : {"softmax", "window:left=4", "strided", "mla", "linear", "retention"}) {
    CAPTURE(attention);
    const auto made = [&] {
      Rng rng(1);
      return DecoderOnly(small(PositionKind::none), 11, attention_factory(attention), rng);
    };
    const DecoderOnly alone = made(), together = made();
    const auto continued = [](const DecoderOnly& model, int64_t length) {
      const NoGrad no_grad;
      return decoded(model, model.start(), length, static_cast<int32_t>(length));
    };
    check_sharing([&](int64_t length) { return continued(alone, length); },
                  [&](int64_t length) { return continued(together, length); });
  }
}

}  // namespace heed
