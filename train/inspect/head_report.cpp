// Sums the measures of heads over examples. Threads share the heads, not the examples, so each sum has a
// fixed order.
#include "heed/train/inspect/head_report.h"

#include <algorithm>
#include <array>

#include "heed/core/counted_work.h"
#include "heed/core/parallel/thread_pool.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/transformer.h"
#include "heed/train/inspect/induction_scores.h"
#include "heed/train/progress/progress.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

constexpr int64_t max_example_tiles = 48;  // a side
constexpr int64_t repeated_tokens = 50, num_repeated_sequences = 8;

/// A measure by which examples are chosen for heads of some roles.
struct ExampleMeasure {
  const char* name;
  std::vector<std::string> roles;
};

/// All such measures, in the order of example_scores(). The first is for heads without one of these roles.
const std::array<ExampleMeasure, 10>& example_measures() {
  static const std::array<ExampleMeasure, 10> all{{{"information", {}},
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
using ExampleScores = std::array<double, 10>;

/// part / total; 0 where the total is not above zero.
double ratio_of(double part, double total) { return total > 0 ? part / total : 0; }

/// The values of example_measures() for one head on one example.
ExampleScores example_scores(const HeadSums& sums, const AlignmentAgreement& agreement) {
  double special = 0;
  for (const auto& [token, mass] : sums.special) special += mass;
  constexpr double min_links = 3;  // fewer may agree by chance
  return {ratio_of(sums.information, sums.rows),
          ratio_of(sums.previous, sums.previous_rows),
          ratio_of(sums.next, sums.next_rows),
          ratio_of(sums.self, sums.self_rows),
          ratio_of(special, sums.rows),
          ratio_of(sums.punctuation, sums.rows),
          ratio_of(sums.rarest, sums.rare_rows),
          ratio_of(sums.entropy, sums.uniform_entropy),
          agreement.links >= min_links ? agreement.accuracy() : 0,
          ratio_of(sums.column, sums.examples)};
}

/// The index of the measure for a head with these roles: that of the first role which has one.
size_t measure_for(const std::vector<HeadRole>& roles) {
  for (const HeadRole& role : roles) {
    for (size_t i = 0; i < example_measures().size(); ++i) {
      const std::vector<std::string>& measured = example_measures()[i].roles;
      if (std::find(measured.begin(), measured.end(), role.name) != measured.end()) return i;
    }
  }
  return 0;
}

/// The key with the largest weight of a query; of several the first.
int64_t heaviest_key(const MapView& map, int64_t head, int64_t query) {
  int64_t best = 0;
  for (int64_t key = 1; key < map.keys; ++key)
    if (map.at(head, query, key) > map.at(head, query, best)) best = key;
  return best;
}

/// Counts the offsets (source - target) of all links, by kind of word.
struct LinkOffsets {
  std::map<std::string, std::map<int64_t, double>> counts;
  void add(const std::string& kind, int64_t offset) { ++counts[kind][offset]; }
  /// The fraction of links with the most frequent offset: what a head reaches that looks at one offset alone.
  double baseline(const std::string& kind) const {
    const auto found = counts.find(kind);
    if (found == counts.end()) return 0;
    double max_count = 0, all = 0;
    for (const auto& [offset, count] : found->second) {
      max_count = std::max(max_count, count);
      all += count;
    }
    return ratio_of(max_count, all);
  }
};

/// The kinds under which a link is counted: its kind of word, and that of swapped adjectives.
std::vector<std::string> kinds_of(const WordLink& link) {
  std::vector<std::string> out{name_of(link.kind)};
  if (link.swapped) out.emplace_back("adjective behind its noun");
  return out;
}

/// Collects the measures and best examples of one head.
struct HeadCollector {
  HeadEntry entry;
  size_t map = 0;                                   ///< index of its map in MappedExample::maps
  std::map<std::string, AlignmentAgreement> links;  ///< by kind; "" is any kind
  /// Examples with the highest scores, [measures][examples].
  std::array<std::vector<HeadExample>, std::tuple_size_v<ExampleScores>> best;

  /// Counts the links whose target word has its largest weight on the linked source word. Returns the counts
  /// of this example alone, where a target word counts once; its links must be adjacent.
  AlignmentAgreement count_agreement(const MapView& view, const std::vector<WordLink>& alignment) {
    AlignmentAgreement of_example;
    for (size_t i = 0; i < alignment.size(); ++i) {
      const int64_t key = heaviest_key(view, entry.head, alignment[i].target);
      for (const std::string& kind : kinds_of(alignment[i])) {
        links[kind].hits += key == alignment[i].source ? 1 : 0;
        ++links[kind].links;
      }
      if (i > 0 && alignment[i].target == alignment[i - 1].target) continue;
      bool hit = false;
      for (size_t j = i; j < alignment.size() && alignment[j].target == alignment[i].target; ++j)
        hit = hit || key == alignment[j].source;
      of_example.hits += hit ? 1 : 0;
      ++of_example.links;
    }
    links[""].hits += of_example.hits;
    links[""].links += of_example.links;
    return of_example;
  }

  /// Inserts an example into the lists of all measures by which it is one of the best `max_examples`.
  void keep_best(const MappedExample& example, const ExampleScores& scores, int64_t max_examples) {
    for (size_t measure = 0; measure < scores.size(); ++measure) {
      std::vector<HeadExample>& list = best[measure];
      const double score = scores[measure];
      const bool is_full = static_cast<int64_t>(list.size()) >= max_examples;
      if (score <= 0 || (is_full && score <= list.back().score)) continue;
      if (is_full) list.pop_back();
      const auto position =
          std::find_if(list.begin(), list.end(), [&](const HeadExample& kept) { return kept.score < score; });
      list.insert(position, {.number = example.number,
                             .caption = example.caption,
                             .score = score,
                             .map = pooled(one_head(example.maps[map], entry.head), max_example_tiles)});
    }
  }
};

/// Counts of the tokens in all examples, by which rare words are found.
struct CountedTokens {
  TokenCounts input;   ///< counts of tokens that an encoder, or the only stack, reads
  TokenCounts target;  ///< counts of tokens that a decoder reads; empty without one
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

/// Counts the tokens of lines, which maps name. Calls `done` after each line.
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

/// Adds up the measures of every head over the examples of a report.
class Collector {
 public:
  Collector(const HeadReportOptions& options, CountedTokens token_counts)
      : options_(options), token_counts_(std::move(token_counts)) {}

  /// Adds an example to the sums of all heads.
  void add(const MappedExample& example) {
    if (heads_.empty()) make_heads(example);
    const std::vector<WordLink> alignment = alignment_of(example);
    parallel_rows(static_cast<int64_t>(heads_.size()), 1, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        HeadCollector& head = heads_[static_cast<size_t>(i)];
        const MapView& map = example.maps[head.map];
        HeadSums sums = sums_of(map, head.entry.head, token_counts_.of(map));
        if (num_examples_ < options_.ranked) {
          sums.rank = rank_of_head(map, head.entry.head);
          sums.rank_maps = 1;
        }
        const AlignmentAgreement agreement =
            map.kind == "cross" ? head.count_agreement(map, alignment) : AlignmentAgreement{};
        head.keep_best(example, example_scores(sums, agreement), options_.best);
        head.entry.sums.add(sums);
      }
    });
    distances_.add(example.maps);
    ++num_examples_;
  }

  /// Gives the heads their roles and examples, and moves them into a report. `repeats`: scores on repeated
  /// sequences, [maps][heads]; empty where there are none.
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
      const size_t measure = measure_for(entry.roles);
      entry.chosen_by = example_measures()[measure].name;
      entry.best = std::move(head.best[measure]);
      out.heads.push_back(std::move(entry));
    }
    out.groups = distances_.groups();
    return out;
  }

 private:
  /// Makes the heads of all maps of the first example.
  void make_heads(const MappedExample& example) {
    for (size_t map = 0; map < example.maps.size(); ++map) {
      const MapView& view = example.maps[map];
      const AttentionPlace place{.kind = view.kind, .layer = view.layer};
      for (int64_t number = 0; number < view.heads; ++number) {
        HeadCollector& head = heads_.emplace_back();
        head.map = map;
        head.entry.name = text(place.name(), ".", number);
        head.entry.module = view.name;
        head.entry.kind = view.kind;
        head.entry.layer = view.layer;
        head.entry.head = number;
      }
    }
  }

  /// The word alignment of an example, whose offsets are counted; empty without the phrasebook.
  std::vector<WordLink> alignment_of(const MappedExample& example) {
    std::vector<WordLink> alignment;
    for (const MapView& map : example.maps) {
      if (!options_.phrasebook || map.kind != "cross" || !alignment.empty()) continue;
      alignment = phrasebook_alignment(map.key_tokens, map.query_tokens);
      for (const WordLink& link : alignment) {
        offsets_.add("", link.source - link.target);
        for (const std::string& kind : kinds_of(link)) offsets_.add(kind, link.source - link.target);
      }
    }
    return alignment;
  }

  const HeadReportOptions& options_;
  CountedTokens token_counts_;
  std::vector<HeadCollector> heads_;
  HeadDistances distances_;
  LinkOffsets offsets_;
  int64_t num_examples_ = 0;
};

}  // namespace

std::vector<std::vector<RepeatScores>> repeat_scores_of_model(Module& module, int64_t period,
                                                              int64_t sequences, uint64_t seed) {
  auto* model = dynamic_cast<DecoderOnly*>(&module);
  if (model == nullptr || period < 2) return {};
  const NoGrad no_grad;
  MapRecorder recorder;
  (*model)(repeated_sequences({.vocabulary = model->embedder.tokens.weight.extent(0),
                               .period = period,
                               .sequences = sequences,
                               .seed = seed}),
           {.recorder = &recorder});
  return mean_repeat_scores(recorder, period);
}

HeadReport head_report(const Task& task, Module& model, const HeadReportOptions& options) {
  const double began = seconds_now();
  const bool by_line = !options.lines.texts.empty();
  const int64_t total = by_line ? static_cast<int64_t>(options.lines.texts.size())
                        : options.source.examples > 0
                            ? std::min(options.source.examples, num_test_examples(task))
                            : num_test_examples(task);
  CountedWork work(static_cast<double>(by_line ? 2 * total : total));  // lines are mapped twice
  Collector collector(options, by_line
                                   ? counted_tokens_of_lines(task, model, options.lines, [&] { work.add(); })
                                   : counted_tokens(task, options.source));
  const auto take = [&](const MappedExample& example) {
    collector.add(example);
    work.add();
  };
  const int64_t count = by_line ? for_each_mapped_line(task, model, options.lines, take)
                                : for_each_mapped_example(task, model, options.source, take);
  std::vector<std::vector<RepeatScores>> repeats;
  if (!by_line && dynamic_cast<DecoderOnly*>(&model) != nullptr) {
    constexpr uint64_t seed = 1;
    const int64_t max_period = example_provider(task).test_lengths(0, options.source.max_tokens)[0] / 2;
    repeats =
        repeat_scores_of_model(model, std::min(repeated_tokens, max_period), num_repeated_sequences, seed);
  }
  HeadReport out = collector.result(repeats);
  out.examples = count;
  out.seconds = seconds_now() - began;
  return out;
}

}  // namespace heed
