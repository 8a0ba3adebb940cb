// Computes the attention maps of many inputs: test examples of a run, or lines of text.
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
  std::string caption;        ///< one line about the example, such as a sentence and its translation
  std::vector<MapView> maps;  ///< all maps, in the order of the forward pass, without padding
};

/// Choice of the test examples, and the memory for their maps.
struct MapSourceOptions {
  int64_t examples = 0;                   ///< number of first test examples; 0: all
  int64_t max_tokens = 1024;              ///< maximum tokens of an input, longer ones are cut; 0: no maximum
  int64_t max_bytes = int64_t{64} << 20;  ///< limit of all maps in memory at once; one example may exceed it
};

/// The indices of the first test examples, grouped into batches of equal lengths, which need no padding. The
/// order depends on the lengths alone: shorter examples first, then by index.
std::vector<std::vector<int64_t>> batches_of_equal_lengths(const Task& task, int64_t examples,
                                                           int64_t max_tokens, int64_t max_batch);

/// Calls `take` with each of the first test examples, in the order of batches_of_equal_lengths(), and returns
/// their number. A decoder reads the targets of the data (teacher forcing). The task's data must be loaded.
/// Fails for a task without test examples by number, and for a model whose attentions have no maps.
int64_t for_each_mapped_example(const Task& task, Module& model, const MapSourceOptions& options,
                                const std::function<void(const MappedExample&)>& take);

/// Inputs in the form that MapProvider::maps() takes: sentences to translate, texts, numbers of test
/// examples.
struct MappedLines {
  std::vector<std::string> texts;        ///< the inputs
  std::vector<std::string> places = {};  ///< FILE:LINE of each input, for errors; empty: errors count from 1
  int64_t max_tokens = 0;                ///< maximum tokens of an input, longer ones are cut; 0: no maximum
};

/// Calls `take` with the maps of each of these inputs, and returns their number. An input that the task
/// cannot read, such as a text that is too long, is left out, and `refused` is called with the error, which
/// names the input's place; without `refused` the error is thrown.
int64_t for_each_mapped_line(const Task& task, Module& model, const MappedLines& lines,
                             const std::function<void(const MappedExample&)>& take,
                             const std::function<void(const Error&)>& refused = {});

/// The maps of sequence `row` of a batch, from the record of its forward pass. `tokens`: those of the
/// sequence.
std::vector<MapView> map_views(Module& model, const MapRecorder& recorder, const ExampleTokens& tokens,
                               int64_t row);

/// Kind and layer of an attention of a model.
struct AttentionPlace {
  std::string kind;          ///< "encoder self", "decoder self" or "cross": MapView::kind
  int64_t layer = 0;         ///< number of the layer, from 0
  std::string name() const;  ///< the first word of the kind, and the layer: "cross.0"
};
/// The place of the attention with this dotted name, such as decoder.blocks.0.cross.
AttentionPlace place_of(const std::string& module_name);

}  // namespace heed
