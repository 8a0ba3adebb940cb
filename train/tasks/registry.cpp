// The list of tasks and what they have in common.
#include <algorithm>
#include <cstdlib>

#include "heed/attention/inspect/head_calls.h"
#include "heed/attention/spec.h"
#include "heed/autograd/tape.h"
#include "heed/core/io/files.h"
#include "heed/train/program.h"
#include "heed/train/run/registration.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

std::vector<TaskEntry>& all_tasks() {
  static std::vector<TaskEntry> all{
#define TASK(name) task::name(),
#include "heed/train/tasks.def"
#undef TASK
  };
  return all;
}

}  // namespace

std::span<const TaskEntry> tasks() { return all_tasks(); }

void register_task(const TaskEntry& entry) {
  std::vector<std::string> taken;
  for (const TaskEntry& one : tasks()) taken.emplace_back(one.name);
  check_registration("register_task", entry.name, entry.about, taken);
  if (entry.make == nullptr)
    fail("register_task: '", entry.name, "' has no function that makes it. Set TaskEntry::make.");
  all_tasks().push_back(entry);
}

std::unique_ptr<Task> make_task(const std::string& name) {
  std::vector<std::string> known;
  for (const TaskEntry& entry : tasks()) {
    if (name == entry.name) return entry.make();
    known.emplace_back(entry.name);
  }
  fail("task '", shown(name), "' is unknown.", suggestion(name, known));
}

Evaluation Task::test(Module& model, const DecodeOptions&) const {
  const NoGrad no_grad;
  Evaluation result;
  result.scores = validate(model);
  result.notes = {"scores of the validation split: the task has no test split"};
  return result;
}

std::vector<MapView> Task::maps(Module&, const std::string&, std::string&) const {
  fail("this task gives no attention maps. A task gives them by overriding Task::maps().");
}

std::vector<MapView> Task::maps_with(Module& model, const std::string& text, const MapParts&,
                                     std::string& caption) const {
  return maps(model, text, caption);
}

namespace {

[[noreturn]] void fail_without_examples() {
  fail("this task gives no test examples by number. A task gives them by overriding Task::test_examples(), ",
       "test_lengths(), test_batch() and example_scores().");
}

}  // namespace

std::vector<int64_t> Task::test_lengths(int64_t, int64_t) const { fail_without_examples(); }

ExampleBatch Task::test_batch(std::span<const int64_t>, int64_t) const { fail_without_examples(); }

std::vector<ExampleScore> Task::example_scores(Module&, const ExampleBatch&, const ForwardContext&) const {
  fail_without_examples();
}

std::vector<ReportSample> Task::test_outputs(Module&, std::span<const int64_t>, const DecodeOptions&,
                                             HeadEditor*) const {
  return {};
}

LensView Task::logit_lens(Module&, const std::string&) const {
  fail(
      "this task gives no logit lens: its models do not predict tokens. Language models and translators do "
      "(tasks lm and translate).");
}

std::string tensor_name(const std::vector<std::string>& names, size_t index) {
  return index < names.size() ? names[index] : text("tensor_", index);
}

Batch Task::shard(int64_t position, const BatchShard& shard) const {
  Batch whole = batch(position);
  const int64_t rows = whole.tensors.at(0).extent(0);
  Batch out;
  out.rows = shard.of(rows);
  out.whole = whole.weight;
  const auto [first, count] = out.rows;
  out.weight = whole.weight * static_cast<double>(count) / static_cast<double>(rows);
  out.tokens = whole.tokens * count / rows;
  for (const Tensor& x : whole.tensors) {
    if (x.extent(0) != rows) {
      fail(Fault::internal, "task: a batch of ", rows, " rows has a tensor ", x.shape(),
           ", which this task must share out itself.");
    }
    if (count > 0) out.tensors.push_back(view::slice(x, 0, first, first + count));
  }
  return out;
}

std::unique_ptr<Module> new_model(const Config& config, Rng& rng) {
  std::unique_ptr<Module> model = config.task->model(config, rng);
  // Weights are drawn in f32, then converted, so that f64 starts from the same values.
  if (config.train.precision == Precision::f64) convert(*model, DType::f64);
  return model;
}

MapView map_view(Module& model, const MapRecorder::Map& map, const std::string& kind, int64_t layer,
                 const std::vector<std::string>& query_tokens, const std::vector<std::string>& key_tokens,
                 int64_t row) {
  const auto queries = static_cast<int64_t>(query_tokens.size());
  const auto keys = static_cast<int64_t>(key_tokens.size());
  MapView view;
  view.name = name_of(model, map.module);
  view.kind = kind;
  view.layer = layer;
  view.heads = map.weights.extent(1);
  view.queries = queries;
  view.keys = keys;
  view.query_tokens = query_tokens;
  view.key_tokens = key_tokens;
  const Tensor cut =
      view::slice(view::slice(view::slice(map.weights, 0, row, row + 1), 2, 0, queries), 3, 0, keys);
  view.weights = cut.to_host();
  return view;
}

MapView map_view(Module& model, const MapRecorder& recorder, size_t index, const std::string& kind,
                 int64_t layer, const std::vector<std::string>& query_tokens,
                 const std::vector<std::string>& key_tokens) {
  MapView view = map_view(model, recorder.maps.at(index), kind, layer, query_tokens, key_tokens);
  add_head_parts(view, recorder, index);
  return view;
}

std::unique_ptr<Tokenizer> artifact_tokenizer(const std::vector<NamedBytes>& files, const std::string& role) {
  const std::string prefix = "tokenizer." + role + ".";
  for (const NamedBytes& file : files) {
    if (file.name.starts_with(prefix))
      return load_tokenizer(file.name.substr(prefix.size()), file.bytes, file.name);
  }
  return nullptr;
}

namespace {

/// True for the common stem of a Moses pair: corpus of corpus.en and corpus.it.
bool is_pair(const Path& path) {
  const std::string stem = path.filename().string() + ".";
  const std::vector<Path> names = io::list(path.parent_path().empty() ? Path(".") : path.parent_path());
  return std::count_if(names.begin(), names.end(),
                       [&](const Path& name) { return name.string().starts_with(stem); }) > 1;
}

}  // namespace

Path find_data(const std::string& path) {
  const char* root = std::getenv("HEED_DATA");
  std::vector<Path> places{path};
  if (root != nullptr && !Path(path).is_absolute()) places.push_back(Path(root) / path);
  for (const auto is_present : {io::exists, is_pair}) {
    for (const Path& place : places) {
      if (is_present(place)) return place;
    }
  }
  const Path fetched = "data-" + path;  // made by `heed data get NAME`
  if (!path.empty() && path.find('/') == std::string::npos && io::exists(fetched)) return fetched;
  if (places.size() == 1) {
    fail(Fault::file, "data: ", path,
         " does not exist. Give --data a file or folder that does, or name their folder in HEED_DATA.");
  }
  fail(Fault::file, "data: neither ", path, " nor ", places[1],
       " exists. Give --data a file or folder that does.");
}

}  // namespace heed
