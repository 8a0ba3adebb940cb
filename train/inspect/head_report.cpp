// Adds up the measures of heads, example by example; threads share the heads, so each sum keeps its order.
#include "heed/train/inspect/head_report.h"

#include <algorithm>
#include <array>

#include "heed/core/counted_work.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/transformer.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

constexpr int64_t example_tiles = 48;
constexpr int64_t repeated_tokens = 50, repeated_sequences = 8;

/// A measure by which examples are chosen for heads whose first role is one of these.
struct Candidate {
  const char* measure;
  std::vector<std::string> roles;
};

/// In the order of candidate_scores(); the first is for heads without such a role.
const std::array<Candidate, 10>& candidates() {
  static const std::array<Candidate, 10> all{{{"information", {}},
                                              {"previous", {"previous token", "positional -1"}},
                                              {"next", {"positional +1"}},
                                              {"self", {"positional 0"}},
                                              {"special", {"special tokens"}},
                                              {"punctuation", {"punctuation"}},
                                              {"rarest_word", {"rare words"}},
                                              {"uniform", {"uniform"}},
                                              {"word_alignment", {"alignment"}},
                                              {"column", {"vertical"}}}};
  return all;
}
using CandidateScores = std::array<double, 10>;

/// part / total; 0 where the total is not above zero.
double ratio_of(double part, double total) { return total > 0 ? part / total : 0; }

CandidateScores candidate_scores(const HeadSums& sums, const AlignmentAgreement& agreement) {
  double special = 0;
  for (const auto& [token, mass] : sums.special) special += mass;
  constexpr double enough_links = 3;  // fewer are hit by chance
  return {ratio_of(sums.information, sums.rows),
          ratio_of(sums.previous, sums.previous_rows),
          ratio_of(sums.next, sums.next_rows),
          ratio_of(sums.self, sums.self_rows),
          ratio_of(special, sums.rows),
          ratio_of(sums.punctuation, sums.rows),
          ratio_of(sums.rarest, sums.rare_rows),
          ratio_of(sums.entropy, sums.uniform_entropy),
          agreement.links >= enough_links ? agreement.accuracy() : 0,
          ratio_of(sums.column, sums.examples)};
}

/// The index of the candidate for a head with these roles.
size_t candidate_of(const std::vector<HeadRole>& roles) {
  for (const HeadRole& role : roles) {
    for (size_t i = 0; i < candidates().size(); ++i) {
      const std::vector<std::string>& of = candidates()[i].roles;
      if (std::find(of.begin(), of.end(), role.name) != of.end()) return i;
    }
  }
  return 0;
}

/// The key with the largest weight of a query; the first one wins a tie.
int64_t heaviest_key(const MapView& map, int64_t head, int64_t query) {
  int64_t best = 0;
  for (int64_t key = 1; key < map.keys; ++key)
    if (map.at(head, query, key) > map.at(head, query, best)) best = key;
  return best;
}

/// The links of an example, and offsets of all links so far: the baseline that one offset reaches.
struct LinkOffsets {
  std::map<std::string, std::map<int64_t, double>> times;
  void add(const std::string& kind, int64_t offset) { ++times[kind][offset]; }
  double baseline(const std::string& kind) const {
    const auto found = times.find(kind);
    if (found == times.end()) return 0;
    double max_count = 0, all = 0;
    for (const auto& [offset, count] : found->second) {
      max_count = std::max(max_count, count);
      all += count;
    }
    return ratio_of(max_count, all);
  }
};

std::vector<std::string> kinds_of(const WordLink& link) {
  std::vector<std::string> out{name_of(link.kind)};
  if (link.swapped) out.emplace_back("adjective behind its noun");
  return out;
}

/// One head's state while examples pass.
struct HeadCollector {
  HeadEntry entry;
  size_t map = 0;
  std::map<std::string, AlignmentAgreement> links;  ///< by kind; "" is any of them
  std::array<std::vector<HeadExample>, std::tuple_size_v<CandidateScores>> best;  ///< by candidate

  /// Counts the links whose target word has its largest weight on the linked source word; returns the
  /// counts of this example.
  AlignmentAgreement agree(const MapView& view, const std::vector<WordLink>& truth) {
    AlignmentAgreement of_example;
    for (size_t i = 0; i < truth.size(); ++i) {
      const int64_t key = heaviest_key(view, entry.head, truth[i].target);
      for (const std::string& kind : kinds_of(truth[i])) {
        links[kind].hits += key == truth[i].source ? 1 : 0;
        ++links[kind].links;
      }
      if (i > 0 && truth[i].target == truth[i - 1].target) continue;  // a word counts once
      bool hit = false;
      for (size_t j = i; j < truth.size() && truth[j].target == truth[i].target; ++j)
        hit = hit || key == truth[j].source;
      of_example.hits += hit ? 1 : 0;
      ++of_example.links;
    }
    links[""].hits += of_example.hits;
    links[""].links += of_example.links;
    return of_example;
  }

  void keep_best(const MappedExample& example, const CandidateScores& scores, int64_t max_examples) {
    for (size_t by = 0; by < scores.size(); ++by) {
      std::vector<HeadExample>& list = best[by];
      const bool full = static_cast<int64_t>(list.size()) >= max_examples;
      if (scores[by] <= 0 || (full && scores[by] <= list.back().score)) continue;
      if (full) list.pop_back();
      HeadExample one{example.number, example.caption, scores[by],
                      pooled(one_head(example.maps[map], entry.head), example_tiles)};
      const auto place = std::find_if(list.begin(), list.end(),
                                      [&](const HeadExample& other) { return other.score < one.score; });
      list.insert(place, std::move(one));
    }
  }
};

/// Tokens of the test examples, for rarity: of what encoders read, and of what decoders read.
struct CountedTokens {
  TokenCounts input, target;
  const TokenCounts& of(const MapView& map) const {
    return map.kind == "decoder self" && !target.empty() ? target : input;
  }
};

CountedTokens counted_tokens(const Task& task, const MapSourceOptions& options) {
  CountedTokens out;
  for (const auto& numbers : batches_of_equal_lengths(task, options.examples, options.max_tokens, 64)) {
    for (const ExampleTokens& row : example_provider(task).test_batch(numbers, options.max_tokens).rows) {
      for (const std::string& token : row.input) ++out.input[token];
      for (const std::string& token : row.target_in) ++out.target[token];
    }
  }
  return out;
}

/// Counts the tokens of lines, which are known once each line is mapped. `done` is called after each.
CountedTokens counted_tokens_of_lines(const Task& task, Module& model, const MappedLines& lines,
                                      const std::function<void()>& done) {
  CountedTokens out;
  for_each_mapped_line(task, model, lines, [&](const MappedExample& example) {
    const auto count = [&](std::string_view kind, TokenCounts& counts) {
      const auto map = std::find_if(example.maps.begin(), example.maps.end(),
                                    [&](const MapView& one) { return one.kind == kind; });
      if (map == example.maps.end()) return;
      for (const std::string& token : map->key_tokens) ++counts[token];
    };
    const bool translates = std::any_of(example.maps.begin(), example.maps.end(),
                                        [](const MapView& one) { return one.kind == "cross"; });
    count(translates ? "cross" : example.maps.front().kind, out.input);
    if (translates) count("decoder self", out.target);
    done();
  });
  return out;
}

/// Adds example after example; see head_report().
class Collector {
 public:
  Collector(const HeadReportOptions& options, CountedTokens counts)
      : options_(options), counts_(std::move(counts)) {}

  void take(const MappedExample& example) {
    if (heads_.empty()) begin(example);
    std::vector<WordLink> truth;
    for (const MapView& map : example.maps) {
      if (!options_.phrasebook || map.kind != "cross" || !truth.empty()) continue;
      truth = phrasebook_alignment(map.key_tokens, map.query_tokens);
      for (const WordLink& link : truth) {
        offsets_.add("", link.source - link.target);
        for (const std::string& kind : kinds_of(link)) offsets_.add(kind, link.source - link.target);
      }
    }
    parallel_rows(static_cast<int64_t>(heads_.size()), 1, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        HeadCollector& head = heads_[static_cast<size_t>(i)];
        const MapView& map = example.maps[head.map];
        HeadSums sums = sums_of(map, head.entry.head, counts_.of(map));
        if (count_ < options_.ranked) {
          sums.rank = rank_of_head(map, head.entry.head);
          sums.rank_maps = 1;
        }
        const AlignmentAgreement agreement =
            map.kind == "cross" ? head.agree(map, truth) : AlignmentAgreement{};
        head.keep_best(example, candidate_scores(sums, agreement), options_.best);
        head.entry.sums.add(sums);
      }
    });
    distances_.add(example.maps);
    ++count_;
  }

  HeadReport result(const std::vector<std::vector<RepeatScores>>& repeats) {
    HeadReport out;
    for (HeadCollector& head : heads_) {
      HeadEntry& entry = head.entry;
      if (head.map < repeats.size())
        entry.evidence.repeats = repeats[head.map][static_cast<size_t>(entry.head)];
      for (auto& [kind, agreement] : head.links) {
        agreement.baseline = offsets_.baseline(kind);
        if (kind.empty() && agreement.links > 0) entry.evidence.alignment = agreement;
        if (!kind.empty()) entry.links[kind] = agreement;
      }
      entry.roles = roles_of(entry.sums, entry.evidence);
      const size_t by = candidate_of(entry.roles);
      entry.chosen_by = candidates()[by].measure;
      entry.best = std::move(head.best[by]);
      out.heads.push_back(std::move(entry));
    }
    out.groups = distances_.groups();
    return out;
  }

 private:
  void begin(const MappedExample& example) {
    for (size_t map = 0; map < example.maps.size(); ++map) {
      const MapView& view = example.maps[map];
      for (int64_t number = 0; number < view.heads; ++number) {
        HeadCollector head;
        const AttentionPlace place{.kind = view.kind, .layer = view.layer};
        head.map = map;
        head.entry.name = text(place.name(), ".", number);
        head.entry.module = view.name;
        head.entry.kind = view.kind;
        head.entry.layer = view.layer;
        head.entry.head = number;
        heads_.push_back(std::move(head));
      }
    }
  }

  const HeadReportOptions& options_;
  CountedTokens counts_;
  std::vector<HeadCollector> heads_;
  HeadDistances distances_;
  LinkOffsets offsets_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<std::vector<RepeatScores>> repeat_scores_of_model(Module& module, int64_t period,
                                                              int64_t sequences, uint64_t seed) {
  auto* model = dynamic_cast<DecoderOnly*>(&module);
  if (model == nullptr || period < 2) return {};
  const NoGrad no_grad;
  const int64_t vocabulary = model->embedder.tokens.weight.extent(0);
  std::vector<int32_t> ids;
  for (int64_t row = 0; row < sequences; ++row)
    for (int64_t i = 0; i < 2 * period; ++i)
      ids.push_back(static_cast<int32_t>(
          counter_below(seed, static_cast<uint64_t>(row), static_cast<uint64_t>(i % period), vocabulary)));
  MapRecorder recorder;
  (*model)(Tensor::of<int32_t>(ids, Shape{sequences, 2 * period}), {.recorder = &recorder});
  const ExampleTokens tokens{.input = std::vector<std::string>(static_cast<size_t>(2 * period))};
  std::vector<std::vector<RepeatScores>> out;
  for (int64_t row = 0; row < sequences; ++row) {
    const std::vector<MapView> views = map_views(module, recorder, tokens, row);
    out.resize(views.size());
    for (size_t map = 0; map < views.size(); ++map) {
      out[map].resize(static_cast<size_t>(views[map].heads));
      for (int64_t head = 0; head < views[map].heads; ++head) {
        const RepeatScores one = repeat_scores(views[map], head, period);
        out[map][static_cast<size_t>(head)].induction += one.induction / static_cast<double>(sequences);
        out[map][static_cast<size_t>(head)].previous += one.previous / static_cast<double>(sequences);
      }
    }
  }
  return out;
}

HeadReport head_report(const Task& task, Module& model, const HeadReportOptions& options) {
  const double began = seconds_now();
  const bool by_line = !options.lines.texts.empty();
  const int64_t all = by_line ? static_cast<int64_t>(options.lines.texts.size())
                      : options.source.examples > 0
                          ? std::min(options.source.examples, num_test_examples(task))
                          : num_test_examples(task);
  CountedWork work(static_cast<double>(by_line ? 2 * all : all));
  Collector collector(options, by_line
                                   ? counted_tokens_of_lines(task, model, options.lines, [&] { work.add(); })
                                   : counted_tokens(task, options.source));
  const auto take = [&](const MappedExample& example) {
    collector.take(example);
    work.add();
  };
  const int64_t count = by_line ? for_each_mapped_line(task, model, options.lines, take)
                                : for_each_mapped_example(task, model, options.source, take);
  std::vector<std::vector<RepeatScores>> repeats;
  if (!by_line && dynamic_cast<DecoderOnly*>(&model) != nullptr) {
    const int64_t longest = example_provider(task).test_lengths(0, options.source.max_tokens)[0];
    repeats = repeat_scores_of_model(model, std::min(repeated_tokens, longest / 2), repeated_sequences, 1);
  }
  HeadReport out = collector.result(repeats);
  out.examples = count;
  out.seconds = seconds_now() - began;
  return out;
}

}  // namespace heed
