// The attention maps of many examples: of a run's test set, or of lines of text.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/train/tasks/example_provider.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// An example with the maps of all layers and heads.
struct MappedExample {
  int64_t number = 0;         ///< number of the test example or line, from 0
  std::string caption;        ///< one line about it, such as a sentence and its translation
  std::vector<MapView> maps;  ///< in the order of the forward pass, without padding
};

/// Which examples to map, and how many at once.
struct MapSourceOptions {
  int64_t examples = 0;                   ///< number of first test examples; 0: all
  int64_t max_tokens = 1024;              ///< longer inputs are cut to so many tokens; 0: none is
  int64_t max_bytes = int64_t{64} << 20;  ///< limit of all maps in memory at once; one example may exceed it
};

/// Numbers of test examples in batches of equal lengths, which need no padding. The order is a function of
/// the lengths alone: shorter ones first, then by number.
std::vector<std::vector<int64_t>> batches_of_equal_lengths(const Task& task, int64_t examples,
                                                           int64_t max_tokens, int64_t max_batch);

/// Calls `take` with each of the first test examples, in the order of batches_of_equal_lengths(). The model
/// evaluates, with the targets of the data as a decoder's input, and its outputs have the bits that they have
/// without a recorder. The data must be loaded. Fails for a task that has no test examples by number, and for
/// a model whose attentions have no maps. Returns how many examples there were.
int64_t for_each_mapped_example(const Task& task, Module& model, const MapSourceOptions& options,
                                const std::function<void(const MappedExample&)>& take);

/// Inputs as Task::maps() takes them: sentences to translate, texts, numbers of test examples.
struct MappedLines {
  std::vector<std::string> texts;        ///< one for each input
  std::vector<std::string> places = {};  ///< where each is from, as FILE:LINE; empty: errors count from 1
  int64_t max_tokens = 0;                ///< longer inputs are cut to so many tokens; 0: none is
};

/// Calls `take` with the maps of each of these inputs, and returns their number. An input that the task
/// cannot read, such as a text that is too long, is given to `refused` with the error, which names its place,
/// and left out; without `refused` it is thrown.
int64_t for_each_mapped_line(const Task& task, Module& model, const MappedLines& lines,
                             const std::function<void(const MappedExample&)>& take,
                             const std::function<void(const Error&)>& refused = {});

/// The maps of one forward pass over a batch: those of its sequence number `row`, whose tokens are `tokens`.
std::vector<MapView> map_views(Module& model, const MapRecorder& recorder, const ExampleTokens& tokens,
                               int64_t row);

/// What an attention of a model is for, by its name: "encoder self", "decoder self" or "cross", and its
/// layer.
struct AttentionPlace {
  std::string kind;   ///< as in MapView::kind
  int64_t layer = 0;  ///< from 0
  /// The kind in one word, and the layer: "cross.0".
  std::string name() const;
};
/// The place of the module with this dotted name, such as decoder.blocks.0.cross.
AttentionPlace place_of(const std::string& module_name);

}  // namespace heed
