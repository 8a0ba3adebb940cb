// Battery: caches in steps, reuse, history, beams, and leaks.
#include "heed/autograd/node.h"
#include "heed/tests/attention/battery/kit.h"

namespace heed::battery {
namespace {

/// The differentiable part of a call: rows begin <= t < end of axis 1.
Tensor rows(const Tensor& x, int64_t begin, int64_t end) { return slice(x, 1, begin, end); }

/// A host that asks `portions` queries at a time. Keys come along when queries attend to themselves;
/// otherwise all come with the first portion.
Tensor walk(const Host& host, AttentionCache& cache, const std::vector<int64_t>& portions) {
  std::vector<Tensor> outputs;
  int64_t at = 0;
  for (const int64_t portion : portions) {
    AttentionInput input{
        .queries = rows(host.queries, at, at + portion), .mask = host.mask(), .cache = &cache};
    if (!host.crosses()) {
      input.keys = input.queries;
    } else if (at == 0) {
      input.keys = host.keys;
    }
    outputs.push_back(host.attention->forward(input));
    at += portion;
  }
  return concat(outputs, 1);
}

std::vector<int64_t> single(int64_t length) { return std::vector<int64_t>(static_cast<size_t>(length), 1); }

std::vector<int64_t> portions_of(int64_t length) {
  std::vector<int64_t> out;
  for (int64_t next = 3; length > 0; next = next % 7 + 1) {
    out.push_back(std::min(next, length));
    length -= out.back();
  }
  return out;
}

double allowed(const Setting& setting) { return 1e-9 * setting.variant.traits.tolerance; }

/// True where a decoder could use a memory in this setting.
bool remembers(const Setting& setting) { return setting.variant.traits.steps && setting.mode != Mode::self; }

std::unique_ptr<AttentionCache> started(const Host& host, Report& report) {
  std::unique_ptr<AttentionCache> cache = host.attention->new_cache();
  if (!cache) note(report, "the traits promise steps, but new_cache() gives no cache");
  return cache;
}

}  // namespace

Report steps(const Setting& setting) {
  if (!remembers(setting) || setting.mode != Mode::causal) return {};
  Report report;
  for (const int64_t length : {5, 70}) {
    Host host = host_of(setting, {.queries = length}, DType::f64);
    for (const bool padded : {false, true}) {
      if (padded && !setting.variant.traits.padding) continue;
      host.lengths = padded ? lengths_of({static_cast<int32_t>(length), 3}, setting.device) : Tensor();
      const Tensor full = host.forward().detach();
      for (const auto& portions : {single(length), portions_of(length)}) {
        for (const bool recorded : {false, true}) {
          const auto cache = started(host, report);
          if (!cache) return report;
          std::unique_ptr<NoGrad> quiet = recorded ? nullptr : std::make_unique<NoGrad>();
          const double off = distance(walk(host, *cache, portions), full);
          if (off > allowed(setting)) {
            note(report, portions.size(), " steps of ", length, " positions differ by ", off,
                 " from one call", recorded ? ", on the tape" : "", padded ? ", with padding" : "");
          }
          if (cache->length != length || cache->queries != length) {
            note(report, "after ", length, " positions the memory counts ", cache->length, " keys and ",
                 cache->queries, " queries");
          }
        }
      }
    }
  }
  return report;
}

namespace {

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
  for (const auto& portions : {single(6), portions_of(6)}) {
    const auto cache = started(host, report);
    if (!cache) return;
    const Tensor walked = walk(host, *cache, portions);
    if (distance(walked, full) > allowed(setting))
      note(report, "with a memory outputs differ by ", distance(walked, full));
    const std::vector<Tensor> found = gradients(walked);
    const auto leaves = host.leaves();
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || distance(found[i], expected[i]) > allowed(setting)) {
        note(report, "through a memory the gradient of ", leaves[i].first, " is ",
             found[i] ? text("off by ", distance(found[i], expected[i])) : std::string("lost"));
      }
    }
  }
}

void check_beams(Report& report, const Setting& setting) {
  const NoGrad quiet;
  const Host host = host_of(setting, {.queries = 8, .keys = 5});
  const std::vector<int32_t> picks{1, 0, 1};
  const Tensor order = lengths_of(picks, setting.device);
  const auto pick = [&](const Tensor& x) {
    const Tensor flat = embedding(reshape(x, Shape{x.extent(0), -1}), order);
    return reshape(flat, Shape{order.size(), x.extent(1), x.extent(2)});
  };
  const auto cache = started(host, report);
  if (!cache) return;
  Host first = host_of(setting, {.queries = 8, .keys = 5});
  first.queries = positions(host.queries, 0, 4);
  if (!first.crosses()) first.keys = first.queries;
  walk(first, *cache, single(4));
  reorder(*cache, order);
  Host all = host_of(setting, {.queries = 8, .keys = 5});
  all.queries = pick(host.queries);
  all.keys = all.crosses() ? pick(host.keys) : all.queries;
  const Tensor expected = all.forward();
  std::vector<Tensor> found;
  for (int64_t t = 4; t < 8; ++t) {
    AttentionInput input{
        .queries = positions(all.queries, t, t + 1), .mask = all.mask(), .cache = cache.get()};
    if (!all.crosses()) input.keys = input.queries;
    found.push_back(all.attention->forward(input));
  }
  const double off = distance(concat(found, 1), positions(expected, 4, 8));
  if (off > 2e-5 * setting.variant.traits.tolerance)
    note(report, "reordered beams differ by ", off, " from those computed anew");
}

}  // namespace

Report cache(const Setting& setting) {
  if (!remembers(setting)) return {};
  Report report;
  check_history(report, setting, false);
  if (setting.variant.traits.padding) check_history(report, setting, true);
  check_beams(report, setting);
  return report;
}

namespace {

Report leaks_in(const Setting& setting, int steps) {
  Report report;
  const int64_t nodes_outside = live_nodes(), bytes_outside = memory_use(setting.device).live;
  {
    Host host = host_of(setting, {.batch = 2, .queries = 33, .keys = 33, .dropout = 0.1});
    host.make_leaves();
    Rng noise(3, setting.device);
    const int64_t nodes = live_nodes();
    int64_t second = 0, last = 0;
    for (int step = 1; step <= steps; ++step) {
      MapRecorder recorder;
      backward(sum(host.forward({.rng = &noise, .recorder = step % 2 == 0 ? &recorder : nullptr})));
      noise.advance();
      recorder.maps.clear();
      last = memory_use(setting.device).live;
      if (step == 2) second = last;
    }
    if (last != second)
      note(report, last - second, " bytes more are live after the last step than after step 2");
    if (live_nodes() != nodes) note(report, live_nodes() - nodes, " nodes of all steps are still alive");
    if (remembers(setting)) {
      const NoGrad quiet;
      const int64_t before = memory_use(setting.device).live;
      for (int turn = 0; turn < 2; ++turn) {
        if (const auto cache = started(host, report)) walk(host, *cache, single(33));
      }
      const int64_t kept = memory_use(setting.device).live - before;
      if (kept != 0) note(report, kept, " bytes of a memory outlive it");
      if (live_nodes() != nodes) note(report, "steps under NoGrad leave ", live_nodes() - nodes, " nodes");
    }
  }
  if (live_nodes() != nodes_outside)
    note(report, live_nodes() - nodes_outside, " nodes outlive the attention");
  const int64_t left = memory_use(setting.device).live - bytes_outside;
  if (left != 0) note(report, left, " bytes outlive the attention");
  return report;
}

}  // namespace

Report leaks(const Setting& setting) {
  // What a device keeps for later, tables and room for products, is there after a first turn.
  if (setting.device != Device::cpu) leaks_in(setting, 2);
  return leaks_in(setting, 50);
}

}  // namespace heed::battery
