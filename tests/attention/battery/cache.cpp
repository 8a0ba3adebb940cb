// Battery: caches in steps, reuse, history, beams, and leaks.
#include "heed/autograd/node.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// Rows begin <= t < end of axis 1, with their gradient, which positions() cuts off.
Tensor rows(const Tensor& x, int64_t begin, int64_t end) { return slice(x, 1, begin, end); }

/// The outputs of a sequence that is decoded with a cache, in calls of as many queries as `portions` says. In
/// self-attention each call brings the keys of its queries; in cross-attention the first call brings all.
Tensor decode(const Host& host, AttentionCache& cache, const std::vector<int64_t>& portions) {
  std::vector<Tensor> outputs;
  int64_t t = 0;
  for (const int64_t portion : portions) {
    AttentionInput input{.queries = rows(host.queries, t, t + portion), .mask = host.mask(), .cache = &cache};
    if (!host.crosses()) {
      input.keys = input.queries;
    } else if (t == 0) {
      input.keys = host.keys;
    }
    outputs.push_back(host.attention->forward(input));
    t += portion;
  }
  return concat(outputs, 1);
}

/// Portions of one query each.
std::vector<int64_t> single_steps(int64_t length) {
  return std::vector<int64_t>(static_cast<size_t>(length), 1);
}

/// Portions of 3, 4, 5, 6, 7, 1, 2, 3, ... queries.
std::vector<int64_t> portions_of(int64_t length) {
  std::vector<int64_t> portions;
  for (int64_t size = 3; length > 0; size = size % 7 + 1) {
    portions.push_back(std::min(size, length));
    length -= portions.back();
  }
  return portions;
}

double max_error(const Setting& setting) { return 1e-9 * setting.variant.traits.tolerance; }

/// True where a decoder could use a cache in this setting.
bool uses_cache(const Setting& setting) { return setting.variant.traits.steps && setting.mode != Mode::self; }

/// A new cache; reports where the attention has none.
std::unique_ptr<AttentionCache> make_cache(const Host& host, Report& report) {
  std::unique_ptr<AttentionCache> cache = host.attention->new_cache();
  if (!cache) note(report, "the traits promise steps, but new_cache() gives no cache");
  return cache;
}

}  // namespace

Report steps(const Setting& setting) {
  if (!uses_cache(setting) || setting.mode != Mode::causal) return {};
  Report report;
  for (const int64_t length : {5, 70}) {
    Host host = host_of(setting, {.queries = length}, DType::f64);
    for (const bool padded : {false, true}) {
      if (padded && !setting.variant.traits.padding) continue;
      host.lengths = padded ? lengths_of({static_cast<int32_t>(length), 3}, setting.device) : Tensor();
      const Tensor full = host.forward().detach();
      for (const auto& portions : {single_steps(length), portions_of(length)}) {
        for (const bool recorded : {false, true}) {
          const auto cache = make_cache(host, report);
          if (!cache) return report;
          const std::unique_ptr<NoGrad> no_grad = recorded ? nullptr : std::make_unique<NoGrad>();
          const double difference = distance(decode(host, *cache, portions), full);
          if (difference > max_error(setting)) {
            note(report, portions.size(), " steps of ", length, " positions differ by ", difference,
                 " from one call", recorded ? ", on the tape" : "", padded ? ", with padding" : "");
          }
          if (cache->length != length || cache->queries != length) {
            note(report, "after ", length, " positions the cache counts ", cache->length, " keys and ",
                 cache->queries, " queries");
          }
        }
      }
    }
  }
  return report;
}

namespace {

/// Checks that outputs and gradients of decoding with a cache equal those of one call. The gradients pass
/// through the cached keys and values.
void check_history(Report& report, const Setting& setting, bool padded) {
  Host host = host_of(setting, {.queries = 6, .keys = 9}, DType::f64);
  if (padded) host.lengths = lengths_of({host.crosses() ? 9 : 6, 4}, setting.device);
  host.make_leaves();
  const Tensor direction = numbers(host.queries.shape(), 3, DType::f64, setting.device);
  const auto gradients = [&](const Tensor& y) {
    host.clear_gradients();
    backward(sum(y * direction));
    std::vector<Tensor> out;
    for (const auto& [name, tensor] : host.leaves()) out.push_back(grad_of(tensor));
    return out;
  };
  const Tensor full = host.forward();
  const std::vector<Tensor> expected = gradients(full);
  for (const auto& portions : {single_steps(6), portions_of(6)}) {
    const auto cache = make_cache(host, report);
    if (!cache) return;
    const Tensor decoded = decode(host, *cache, portions);
    if (distance(decoded, full) > max_error(setting))
      note(report, "with a cache outputs differ by ", distance(decoded, full));
    const std::vector<Tensor> found = gradients(decoded);
    const auto leaves = host.leaves();
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || distance(found[i], expected[i]) > max_error(setting)) {
        note(report, "through a cache the gradient of ", leaves[i].first, " is ",
             found[i] ? text("off by ", distance(found[i], expected[i])) : std::string("lost"));
      }
    }
  }
}

/// Decodes 4 of 8 positions, reorders the cache as beam search does, decodes the others, and compares these
/// to one call on the reordered inputs.
void check_beams(Report& report, const Setting& setting) {
  const NoGrad no_grad;
  const Sizes sizes{.queries = 8, .keys = 5};
  const Host host = host_of(setting, sizes);
  const Tensor beams = lengths_of({1, 0, 1}, setting.device);  // row b continues beam beams[b]
  const auto reordered = [&](const Tensor& x) {
    const Tensor flat = embedding(reshape(x, Shape{x.extent(0), -1}), beams);
    return reshape(flat, Shape{beams.size(), x.extent(1), x.extent(2)});
  };
  const auto cache = make_cache(host, report);
  if (!cache) return;
  Host first_half = host_of(setting, sizes);
  first_half.queries = positions(host.queries, 0, 4);
  if (!first_half.crosses()) first_half.keys = first_half.queries;
  decode(first_half, *cache, single_steps(4));
  reorder(*cache, beams);
  Host reordered_host = host_of(setting, sizes);
  reordered_host.queries = reordered(host.queries);
  reordered_host.keys = host.crosses() ? reordered(host.keys) : reordered_host.queries;
  const Tensor expected = reordered_host.forward();
  std::vector<Tensor> outputs;
  for (int64_t t = 4; t < 8; ++t) {
    AttentionInput input{.queries = positions(reordered_host.queries, t, t + 1),
                         .mask = reordered_host.mask(),
                         .cache = cache.get()};
    if (!host.crosses()) input.keys = input.queries;
    outputs.push_back(reordered_host.attention->forward(input));
  }
  const double difference = distance(concat(outputs, 1), positions(expected, 4, 8));
  if (difference > 2e-5 * setting.variant.traits.tolerance)
    note(report, "reordered beams differ by ", difference, " from those computed anew");
}

}  // namespace

Report cache(const Setting& setting) {
  if (!uses_cache(setting)) return {};
  Report report;
  check_history(report, setting, /*padded=*/false);
  if (setting.variant.traits.padding) check_history(report, setting, /*padded=*/true);
  check_beams(report, setting);
  return report;
}

namespace {

/// Counts live bytes and nodes of the tape after training steps and after decoding; they must not grow.
Report leaks_after(int num_steps, const Setting& setting) {
  Report report;
  const int64_t nodes_outside = live_nodes(), bytes_outside = memory_use(setting.device).live;
  {
    Host host = host_of(setting, {.batch = 2, .queries = 33, .keys = 33, .dropout = 0.1});
    host.make_leaves();
    Rng rng(3, setting.device);
    const int64_t nodes = live_nodes();
    int64_t bytes_after_second = 0, bytes = 0;
    for (int step = 1; step <= num_steps; ++step) {
      MapRecorder recorder;
      backward(sum(host.forward({.rng = &rng, .recorder = step % 2 == 0 ? &recorder : nullptr})));
      rng.advance();
      recorder.maps.clear();
      bytes = memory_use(setting.device).live;
      if (step == 2) bytes_after_second = bytes;
    }
    if (bytes != bytes_after_second)
      note(report, bytes - bytes_after_second, " bytes more are live after the last step than after step 2");
    if (live_nodes() != nodes) note(report, live_nodes() - nodes, " nodes of all steps are still alive");
    if (uses_cache(setting)) {
      const NoGrad no_grad;
      const int64_t bytes_before_decoding = memory_use(setting.device).live;
      for (int pass = 0; pass < 2; ++pass) {
        if (const auto cache = make_cache(host, report)) decode(host, *cache, single_steps(33));
      }
      const int64_t leaked = memory_use(setting.device).live - bytes_before_decoding;
      if (leaked != 0) note(report, leaked, " bytes of a cache outlive it");
      if (live_nodes() != nodes) note(report, "steps under NoGrad leave ", live_nodes() - nodes, " nodes");
    }
  }
  if (live_nodes() != nodes_outside)
    note(report, live_nodes() - nodes_outside, " nodes outlive the attention");
  const int64_t leaked = memory_use(setting.device).live - bytes_outside;
  if (leaked != 0) note(report, leaked, " bytes outlive the attention");
  return report;
}

}  // namespace

Report leaks(const Setting& setting) {
  // A device keeps tables and the workspace of matrix products for later: a first pass allocates these.
  if (setting.device != Device::cpu) leaks_after(2, setting);
  return leaks_after(50, setting);
}

}  // namespace heed::battery
