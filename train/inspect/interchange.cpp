// Runs interchange interventions over batches of test sequences and judges their effects.
#include "heed/train/inspect/interchange.h"

#include <algorithm>
#include <array>
#include <span>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/core/counted_work.h"
#include "heed/core/io/table_text.h"
#include "heed/train/tasks/recall_provider.h"

namespace heed {
namespace {

constexpr std::array<ExchangePlace, 3> all_places{ExchangePlace::key, ExchangePlace::value,
                                                  ExchangePlace::question};
constexpr double decides = 0.5;  // share of answers from which on a state decides

using Swaps = std::span<const KeySwap>;

/// Sequences of swaps as ids i32 [B, T].
Tensor ids_of(Swaps swaps, std::vector<int32_t> KeySwap::*tokens) {
  std::vector<int32_t> ids;
  for (const KeySwap& one : swaps) ids.insert(ids.end(), (one.*tokens).begin(), (one.*tokens).end());
  const auto batch = std::ssize(swaps);
  return Tensor::of<int32_t>(ids, Shape{batch, std::ssize(ids) / batch});
}

/// The rows b T + t of the questions.
std::vector<int32_t> questions_of(Swaps swaps) {
  std::vector<int32_t> rows;
  const auto length = std::ssize(swaps.front().tokens);
  for (size_t i = 0; i < swaps.size(); ++i)
    rows.push_back(static_cast<int32_t>(static_cast<int64_t>(i) * length + swaps[i].question));
  return rows;
}

/// 1 where a state is replaced, else 0: f32 [B, T].
Tensor mask_of(Swaps swaps, ExchangePlace place) {
  const auto length = std::ssize(swaps.front().tokens), batch = std::ssize(swaps);
  std::vector<float> mask(static_cast<size_t>(batch * length));
  for (size_t i = 0; i < swaps.size(); ++i) {
    const KeySwap& one = swaps[i];
    const std::vector<int64_t> places = place == ExchangePlace::key     ? one.keys
                                        : place == ExchangePlace::value ? one.values
                                                                        : std::vector{one.question};
    for (const int64_t at : places) mask[i * static_cast<size_t>(length) + static_cast<size_t>(at)] = 1;
  }
  return Tensor::of<float>(mask, Shape{batch, length});
}

/// The swaps whose questions the model answers right, with and without swapped keys.
std::vector<KeySwap> answered_right(const RecallProvider& task, Module& model, Swaps swaps) {
  const std::vector<int32_t> rows = questions_of(swaps);
  const auto own = task.answers(model, ids_of(swaps, &KeySwap::tokens), rows, {});
  const auto other = task.answers(model, ids_of(swaps, &KeySwap::swapped), rows, {});
  std::vector<KeySwap> out;
  for (size_t i = 0; i < swaps.size(); ++i) {
    if (own[i] == swaps[i].answer && other[i] == swaps[i].other_answer) out.push_back(swaps[i]);
  }
  return out;
}

/// Adds the number of answers of each kind to the effects of a report.
void add_effects(const RecallProvider& task, Module& model, Swaps swaps, InterchangeReport& report) {
  const NoGrad no_grad;
  const Tensor tokens = ids_of(swaps, &KeySwap::tokens);
  const std::vector<int32_t> rows = questions_of(swaps);
  StateExchange states;
  states.record();
  task.answers(model, ids_of(swaps, &KeySwap::swapped), rows, {.editor = &states});
  const std::vector<StateSite> sites = states.sites();
  if (report.effects.empty()) {
    for (const StateSite& site : sites)
      for (const ExchangePlace place : all_places) report.effects.push_back({.site = site, .place = place});
  }
  for (InterchangeEffect& effect : report.effects) {
    states.replace(effect.site, mask_of(swaps, effect.place));
    const auto answers = task.answers(model, tokens, rows, {.editor = &states});
    for (size_t i = 0; i < swaps.size(); ++i) {
      effect.other += answers[i] == swaps[i].other_answer ? 1 : 0;
      effect.own += answers[i] == swaps[i].answer ? 1 : 0;
    }
  }
}

/// The last block whose stream does not decide at the question yet; -1: none.
int64_t answering_block(const InterchangeReport& report) {
  for (int64_t layer = report.layers - 1; layer >= 0; --layer) {
    if (report.other(StateKind::stream, layer, ExchangePlace::question) < decides) return layer;
  }
  return -1;
}

}  // namespace

const char* to_string(ExchangePlace place) {
  switch (place) {
    case ExchangePlace::key:
      return "key";
    case ExchangePlace::value:
      return "value";
    case ExchangePlace::question:
      return "question";
  }
  return "";
}

const char* to_string(RecallMechanism mechanism) {
  switch (mechanism) {
    case RecallMechanism::induction:
      return "induction";
    case RecallMechanism::convolution:
      return "convolution";
    case RecallMechanism::lookup:
      return "lookup";
    case RecallMechanism::neither:
      return "neither";
  }
  return "";
}

double InterchangeReport::other(StateKind kind, int64_t layer, ExchangePlace place) const {
  for (const InterchangeEffect& effect : effects) {
    if (effect.site == StateSite{kind, layer} && effect.place == place) return effect.other;
  }
  return 0;
}

RecallMechanism mechanism_of(const InterchangeReport& report) {
  const int64_t layer = answering_block(report);
  const auto decides_at = [&](StateKind kind, ExchangePlace place) {
    return report.other(kind, layer, place) >= decides;
  };
  if (layer < 0) return RecallMechanism::neither;
  const bool key = decides_at(StateKind::stream, ExchangePlace::key),
             value = decides_at(StateKind::stream, ExchangePlace::value);
  if (key == value) return RecallMechanism::neither;
  if (value) return RecallMechanism::induction;
  const bool is_shifted =
      decides_at(StateKind::input, ExchangePlace::value) && !decides_at(StateKind::input, ExchangePlace::key);
  return is_shifted ? RecallMechanism::convolution : RecallMechanism::lookup;
}

InterchangeReport interchange(const Task& task, Module& model, int64_t examples) {
  constexpr size_t max_batch = 128;
  const RecallProvider& provider = recall_provider(task);
  const std::vector<KeySwap> swaps = provider.key_swaps(examples);
  InterchangeReport report{.examples = std::ssize(swaps)};
  CountedWork work(static_cast<double>(swaps.size()));
  for (size_t first = 0; first < swaps.size(); first += max_batch) {
    const Swaps batch = Swaps(swaps).subspan(first, std::min(max_batch, swaps.size() - first));
    const std::vector<KeySwap> right = answered_right(provider, model, batch);
    if (!right.empty()) add_effects(provider, model, right, report);
    report.used += std::ssize(right);
    work.add(static_cast<double>(batch.size()));
  }
  for (InterchangeEffect& effect : report.effects) {
    effect.other /= static_cast<double>(report.used);
    effect.own /= static_cast<double>(report.used);
    if (effect.site.kind == StateKind::stream) report.layers = effect.site.layer;
  }
  report.answered_by = answering_block(report);
  report.mechanism = mechanism_of(report);
  return report;
}

Json interchange_json(const InterchangeReport& report) {
  std::vector<Json> effects;
  for (const InterchangeEffect& effect : report.effects) {
    effects.push_back(Json::object({{"state", to_string(effect.site.kind)},
                                    {"layer", effect.site.layer},
                                    {"place", to_string(effect.place)},
                                    {"other", effect.other},
                                    {"own", effect.own}}));
  }
  return Json::object({{"examples", report.examples},
                       {"used", report.used},
                       {"layers", report.layers},
                       {"answered_by", report.answered_by},
                       {"mechanism", to_string(report.mechanism)},
                       {"effects", std::move(effects)}});
}

std::string interchange_text(const InterchangeReport& report) {
  std::vector<TableRow> rows{{"state", "layer", "key", "value", "question"}};
  for (size_t i = 0; i + 2 < report.effects.size(); i += all_places.size()) {
    const StateSite& site = report.effects[i].site;
    rows.push_back({to_string(site.kind), text(site.layer)});
    for (const ExchangePlace place : all_places)
      rows.back().push_back(picture::fixed(report.other(site.kind, site.layer, place), 3));
  }
  std::string out =
      text(report.used, " of ", report.examples, " sequences are answered right with and without the swap\n");
  if (report.used == 0) return out;
  out += "share of answers that become those of the other sequence, by the places replaced\n\n";
  out += aligned_table(rows, {.alignment = "lrrrr"});
  out += text("\nmechanism: ", to_string(report.mechanism));
  if (report.answered_by >= 0) out += text(", answered by block ", report.answered_by);
  return out + "\n";
}

}  // namespace heed
