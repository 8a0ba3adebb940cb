// Runs test examples through a model, in batches whose maps fit into a bounded amount of memory.
#include "heed/train/inspect/map_source.h"

#include <algorithm>
#include <map>

#include "heed/train/tasks/map_provider.h"

namespace heed {
namespace {

constexpr int64_t max_batch_rows = 64;  // limit of a batch: more are not faster

/// The bytes of all recorded maps.
int64_t bytes_of(const MapRecorder& recorder) {
  int64_t bytes = 0;
  for (const MapRecorder::Map& map : recorder.maps)
    bytes += map.weights.size() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

/// The indices of the first test examples, grouped by their lengths, the shortest first.
std::vector<std::vector<int64_t>> groups_of_equal_lengths(const Task& task, int64_t examples,
                                                          int64_t max_tokens) {
  const int64_t available = num_test_examples(task);
  if (available == 0)
    fail("this task gives no test examples by number. Give inputs, or derive the task from ExampleProvider.");
  std::map<std::vector<int64_t>, std::vector<int64_t>> groups;
  const int64_t count = examples > 0 ? std::min(examples, available) : available;
  for (int64_t index = 0; index < count; ++index)
    groups[example_provider(task).test_lengths(index, max_tokens)].push_back(index);
  std::vector<std::vector<int64_t>> out;
  for (auto& [lengths, indices] : groups) out.push_back(std::move(indices));
  return out;
}

}  // namespace

std::string AttentionPlace::name() const { return kind.substr(0, kind.find(' ')) + "." + text(layer); }

AttentionPlace place_of(const std::string& module_name) {
  AttentionPlace out;
  out.layer = block_of(module_name);
  out.kind = module_name.ends_with("cross")                     ? "cross"
             : module_name.find("decoder") == std::string::npos ? "encoder self"
                                                                : "decoder self";
  return out;
}

std::vector<MapView> map_views(Module& model, const MapRecorder& recorder, const ExampleTokens& tokens,
                               int64_t row) {
  std::vector<MapView> views;
  for (const MapRecorder::Map& map : recorder.maps) {
    const AttentionPlace place = place_of(name_of(model, map.module));
    const bool reads_targets = place.kind == "decoder self" && !tokens.target_in.empty();
    const std::vector<std::string>& keys = reads_targets ? tokens.target_in : tokens.input;
    const std::vector<std::string>& queries = place.kind == "cross" ? tokens.target_out : keys;
    views.push_back(map_view(model, map,
                             {.kind = place.kind,
                              .layer = place.layer,
                              .sequence = row,
                              .query_tokens = queries,
                              .key_tokens = keys}));
  }
  return views;
}

std::vector<std::vector<int64_t>> batches_of_equal_lengths(const Task& task, int64_t examples,
                                                           int64_t max_tokens, int64_t max_batch) {
  std::vector<std::vector<int64_t>> out;
  for (const std::vector<int64_t>& group : groups_of_equal_lengths(task, examples, max_tokens)) {
    for (auto begin = group.begin(); begin != group.end();) {
      const auto end = begin + std::min<int64_t>(max_batch, group.end() - begin);
      out.emplace_back(begin, end);
      begin = end;
    }
  }
  return out;
}

int64_t for_each_mapped_example(const Task& task, Module& model, const MapSourceOptions& options,
                                const std::function<void(const MappedExample&)>& take) {
  const NoGrad no_grad;
  int64_t count = 0;
  for (const std::vector<int64_t>& group :
       groups_of_equal_lengths(task, options.examples, options.max_tokens)) {
    size_t rows = 1;  // rows of the next batch; the maps of the first tell how many rows fit into max_bytes
    for (size_t begin = 0; begin < group.size();) {
      const size_t end = std::min(begin + rows, group.size());
      const ExampleBatch examples =
          example_provider(task).test_batch(std::span(group).subspan(begin, end - begin), options.max_tokens);
      MapRecorder recorder;
      task.loss(model, examples.batch, {.recorder = &recorder});
      if (recorder.maps.empty()) fail("the attentions of this model have no maps to look at.");
      for (size_t row = 0; row < examples.rows.size(); ++row) {
        const ExampleTokens& tokens = examples.rows[row];
        take({.number = tokens.number,
              .caption = tokens.caption,
              .maps = map_views(model, recorder, tokens, static_cast<int64_t>(row))});
      }
      count += static_cast<int64_t>(end - begin);
      const int64_t row_bytes = std::max<int64_t>(bytes_of(recorder) / static_cast<int64_t>(end - begin), 1);
      rows = static_cast<size_t>(std::clamp<int64_t>(options.max_bytes / row_bytes, 1, max_batch_rows));
      begin = end;
    }
  }
  return count;
}

int64_t for_each_mapped_line(const Task& task, Module& model, const MappedLines& lines,
                             const std::function<void(const MappedExample&)>& take,
                             const std::function<void(const Error&)>& refused) {
  int64_t count = 0;
  for (size_t i = 0; i < lines.texts.size(); ++i) {
    MappedExample example{.number = static_cast<int64_t>(i), .caption = "", .maps = {}};
    try {
      const MapParts parts{.longest = lines.max_tokens, .max_tokens = lines.max_tokens};
      example.maps = map_provider(task).maps_with(model, lines.texts[i], parts, example.caption);
    } catch (const Error& error) {
      const std::string place = lines.places.empty() ? text("line ", i + 1) : lines.places[i];
      const Error error_with_place(error.fault(), text(place, ": ", error.what()));
      if (!refused || error.fault() != Fault::usage) throw error_with_place;
      refused(error_with_place);
      continue;
    }
    if (example.maps.empty()) fail("the attentions of this model have no maps to look at.");
    take(example);
    ++count;
  }
  return count;
}

}  // namespace heed
