// ListOps of the Long Range Arena: the value of a nested expression of up to 2,000 tokens.
#include "heed/data/synthetic/listops.h"
#include "heed/core/io/files.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t listops_seed = 1;

class ListOps final : public LongTask {
  void more_fields(Fields& f) override {
    f("depth", grammar_.depth, {2, 20}, "depth of the tree in nodes; operators nest one level fewer");
    f("arguments", grammar_.arguments, {2, 20}, "largest number of arguments of an operator");
    f("operators", grammar_.operators, "share of operators among nodes that may be one");
    f("shortest", grammar_.shortest, {1, 1'000'000}, "generated expressions have more tokens than this");
    f("below", grammar_.longest, {3, 1'000'000}, "generated expressions have fewer tokens than this");
  }

  Tokens tokens() const override { return {.vocabulary = listops_vocabulary, .hidden = 0.1}; }
  std::vector<std::string> classes() const override {
    return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  }

  LongSplits make(const Log& log) const override {
    const int64_t count = options_.num_examples + options_.validation + options_.test_size;
    const std::string recipe = text("listops 1: ", count, " of seed ", listops_seed, ", depth ",
                                    grammar_.depth, ", arguments ", grammar_.arguments, ", operators ",
                                    grammar_.operators, ", ", grammar_.shortest, " to ", grammar_.longest);
    log("data        expressions by the benchmark's grammar, made here; its own files: --data FOLDER of "
        "basic_train.tsv, basic_val.tsv and basic_test.tsv");
    const auto draw = [&] { return listops(count, listops_seed, grammar_); };
    return cut(count > 20000
                   ? cached(recipe, draw, [&](const std::string& line) { log("cache       " + line); })
                   : draw());
  }

  LongSplits read(const Path& path, const Log&) const override {
    auto [train, validation, test] = read_listops_folder(path);
    return {std::move(train), std::move(validation), std::move(test)};
  }

  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override {
    return listops_baselines(train_set, test_set, 3);
  }

  std::string token_name(uint8_t byte, int64_t) const override {
    const char token = static_cast<char>(byte);
    return listops_text({&token, 1});
  }

  ListOpsGrammar grammar_;
};

}  // namespace

TaskEntry task::lra_listops() {
  return task_entry<ListOps>(
      "lra-listops", "Long Range Arena: the value of nested operators over digits, up to 2,000 tokens");
}

}  // namespace heed
