// A synthetic model whose heads are known is labelled right; reports of real tasks are whole.
#include "heed/train/inspect/head_report.h"

#include <algorithm>
#include <set>

#include "heed/core/counted_work.h"
#include "heed/core/error.h"
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/example_provider.h"

using namespace heed;

namespace {

/// Stands for an attention: it has a name and no numbers.
struct NamedAttention final : Module {
  void fields(Fields&) override {}
};

/// A model of attentions that are known beforehand.
struct KnownModel final : Module {
  NamedAttention encoder, cross;
  void fields(Fields& f) override {
    f("encoder.blocks.0.attention", encoder);
    f("decoder.blocks.0.cross", cross);
  }
};

/// The phrasebook, and a forward pass that records known maps. Encoder: head 0 copies, 1 looks back, 2 is
/// uniform, 3 looks at the rarest word. Cross-attention: head 0 follows the word alignment, 1 is uniform.
class KnownTask final : public Task, public ExampleProvider {
 public:
  explicit KnownTask(Config config) : config_(std::move(config)) {
    config_.task->load(config_, {}, [](const std::string&) {});
  }
  std::unique_ptr<Module> model(const Config&, Rng&) const override { return std::make_unique<KnownModel>(); }
  int64_t plan(int64_t) override { return 0; }
  Batch batch(int64_t) const override { return {}; }
  Scores validate(Module&) const override { return {}; }
  int64_t test_examples() const override { return example_provider(*config_.task).test_examples(); }
  std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const override {
    return example_provider(*config_.task).test_lengths(number, max_tokens);
  }
  ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const override {
    const ExampleBatch out = example_provider(*config_.task).test_batch(numbers, max_tokens);
    rows_ = out.rows;
    for (const ExampleTokens& row : out.rows)
      if (counting_)
        for (const std::string& token : row.input) ++counts_[token];
    return out;
  }
  std::vector<ExampleScore> example_scores(Module&, const ExampleBatch&,
                                           const ForwardContext&) const override {
    return {};
  }
  Tensor loss(Module& module, const Batch&, const ForwardContext& context) const override {
    counting_ = false;  // tokens are counted in a first pass
    auto& model = dynamic_cast<KnownModel&>(module);
    const auto batch = static_cast<int64_t>(rows_.size());
    const auto source = static_cast<int64_t>(rows_[0].input.size()),
               target = static_cast<int64_t>(rows_[0].target_out.size());
    std::vector<float> self(static_cast<size_t>(batch * 4 * source * source)),
        cross(static_cast<size_t>(batch * 2 * target * source));
    for (int64_t b = 0; b < batch; ++b) {
      fill_self(rows_[static_cast<size_t>(b)].input, self.data() + b * 4 * source * source);
      fill_cross(rows_[static_cast<size_t>(b)], cross.data() + b * 2 * target * source);
    }
    context.recorder->record(model.encoder, Tensor::from(self, Shape{batch, 4, source, source}));
    context.recorder->record(model.cross, Tensor::from(cross, Shape{batch, 2, target, source}));
    return Tensor::full(Shape{}, 0);
  }

 private:
  void fill_self(const std::vector<std::string>& tokens, float* to) const {
    const auto n = static_cast<int64_t>(tokens.size());
    int64_t rarest = 1;
    for (int64_t i = 1; i + 1 < n; ++i)
      if (counts_.at(tokens[static_cast<size_t>(i)]) < counts_.at(tokens[static_cast<size_t>(rarest)]))
        rarest = i;
    for (int64_t i = 0; i < n; ++i) {
      to[i * n + i] = 1;
      to[(n + i) * n + std::max<int64_t>(i - 1, 0)] = 1;
      std::fill_n(to + (2 * n + i) * n, n, 1.0F / static_cast<float>(n));
      to[(3 * n + i) * n + rarest] = 1;
    }
  }
  static void fill_cross(const ExampleTokens& row, float* to) {
    const auto n = static_cast<int64_t>(row.input.size()), m = static_cast<int64_t>(row.target_out.size());
    std::vector<int64_t> aligned(static_cast<size_t>(m), n - 1);
    for (const WordLink& link : phrasebook_alignment(row.input, row.target_out))
      aligned[static_cast<size_t>(link.target)] = link.source;
    for (int64_t i = 0; i < m; ++i) {
      to[i * n + aligned[static_cast<size_t>(i)]] = 1;
      std::fill_n(to + (m + i) * n, n, 1.0F / static_cast<float>(n));
    }
  }

  Config config_;
  mutable std::vector<ExampleTokens> rows_;
  mutable std::map<std::string, int64_t> counts_;
  mutable bool counting_ = true;
};

Config translate_config(const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Config config = make_config("translate");
  std::vector<std::pair<std::string, std::string>> settings{
      {"data.num_examples", "400"}, {"data.validation", "10"}, {"data.test_size", "60"},
      {"data.min_frequency", "1"},  {"model.d_model", "16"},   {"model.heads", "2"},
      {"model.d_ff", "16"},         {"model.max_length", "40"}};
  settings.insert(settings.end(), more.begin(), more.end());
  for (const auto& [key, value] : settings) config.set(key, value, "");
  return config;
}

std::vector<std::string> roles(const HeadReport& report, const std::string& head) {
  std::vector<std::string> out;
  for (const HeadEntry& entry : report.heads)
    if (entry.name == head)
      for (const HeadRole& role : entry.roles) out.push_back(role.name);
  return out;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

TEST_CASE(
    "head report: heads of a synthetic model that copy, look back, are uniform or align are labelled so") {
  const KnownTask task(translate_config());
  KnownModel model;
  const HeadReport report = head_report(task, model, {.phrasebook = true});
  REQUIRE(report.heads.size() == 6);
  CHECK(report.examples == 60);
  CHECK(has(roles(report, "encoder.0.0"), "positional 0"));
  CHECK(has(roles(report, "encoder.0.1"), "positional -1"));
  CHECK(roles(report, "encoder.0.2") == std::vector<std::string>{"uniform"});
  CHECK(has(roles(report, "encoder.0.3"), "rare words"));
  CHECK(has(roles(report, "cross.0.0"), "alignment"));
  CHECK(roles(report, "cross.0.1") == std::vector<std::string>{"uniform"});
  const HeadEntry& aligning = report.heads[4];
  REQUIRE(aligning.evidence.alignment);
  CHECK(aligning.evidence.alignment->accuracy() > 0.95);
  CHECK(aligning.links.at("noun").accuracy() == 1);
  CHECK(aligning.links.at("adjective behind its noun").links > 3);
  CHECK(report.heads[5].evidence.alignment->accuracy() < 0.3);
  CHECK(aligning.chosen_by == "word_alignment");
  REQUIRE(aligning.best.size() == 3);
  CHECK(aligning.best[0].map.heads == 1);
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].heads.size() == 4);
}

TEST_CASE("head report: the same numbers for any number of threads and for batches of any size") {
  Config config = translate_config();
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(2);
  const auto model = new_model(config, rng);
  const auto numbers = [&](int64_t bytes) {
    HeadReport report =
        head_report(*config.task, *model, {.source = {.max_bytes = bytes}, .phrasebook = true});
    report.seconds = 0;
    return head_report_json(report).dump();
  };
  const std::string one = numbers(int64_t{64} << 20);
  CHECK(one == numbers(int64_t{64} << 20));
  const Json json = parse_json(one, "report");
  CHECK(json.at("heads").list().size() == 6);
  for (const Json& head : json.at("heads").list()) {
    CHECK(head.at("measures").at("row_sum").real() == Approx(1).margin(1e-5));
    CHECK(head.at("examples").list().size() == 3);
  }
  CHECK(json.at("jensen_shannon").list().size() == 3);
}

TEST_CASE("head report: of a language model with scores on repeated sequences, in text, JSON and page") {
  Config config = make_config("lm");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"data.num_examples", "4000"},
                                                        {"model.d_model", "16"},
                                                        {"model.heads", "2"},
                                                        {"model.layers", "2"},
                                                        {"model.d_ff", "16"},
                                                        {"model.max_length", "24"}})
    config.set(key, value, "");
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(2);
  const auto model = new_model(config, rng);
  std::vector<double> shares;
  const WorkScope scope([&](const WorkDone& now) { shares.push_back(now.share); });
  const HeadReport report = head_report(*config.task, *model, {.source = {.examples = 7}});
  REQUIRE(shares.size() == 7);
  CHECK(shares.front() == Approx(1.0 / 7));
  CHECK(shares.back() == 1);
  REQUIRE(report.heads.size() == 4);
  REQUIRE(report.heads[3].evidence.repeats);
  CHECK(report.heads[3].evidence.repeats->induction > 0);
  CHECK(report.heads[3].name == "decoder.1.1");
  CHECK(head_report_text(report).find("decoder.1.1") != std::string::npos);
  const std::string page = head_report_page(report, "a <run>", "what");
  CHECK(page.find("a &lt;run&gt;") != std::string::npos);
  CHECK(page.find("http") == page.find("http-equiv"));  // nothing is loaded
  CHECK(head_distances_svg(report).find("decoder.1.1") != std::string::npos);
}

TEST_CASE("head report: lines of text in place of test examples") {
  Config config = translate_config();
  config.task->load(config, {}, [](const std::string&) {});
  Rng rng(2);
  const auto model = new_model(config, rng);
  const MappedLines lines{.texts = {"Anna reads the book.", "The old man smiles."}};
  const HeadReport report = head_report(*config.task, *model, {.lines = lines});
  CHECK(report.examples == 2);
  CHECK(report.heads[0].best[0].caption.find("\u2192") != std::string::npos);
}
