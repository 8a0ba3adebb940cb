// Workloads of the training benchmark: a model and its steps, by row name.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "heed/train/optim/optimizer.h"
#include "heed/train/program.h"
#include "heed/train/tasks/task.h"

namespace heed::bench {

/// A model, its batches and its loss. Steps i and i + period have equal shapes.
struct Workload {
  std::shared_ptr<Config> config;
  std::unique_ptr<Module> model;
  int64_t period = 1;
  std::function<Batch(int64_t step)> batch;  ///< on the default device of the thread that calls it
  std::function<Tensor(const Batch&, const ForwardContext&)> loss;
  std::function<double(int64_t step)>
      tokens;  ///< tokens of a step without padding: targets, or inputs of an encoder
};

/// A benchmark of the list: a named workload on random tokens, which needs no data.
struct Row {
  const char* name;
  const char* about;
  const char* preset;  ///< preset with its settings; empty: they are in train/bench/workloads/NAME.toml
  Workload (*make)(std::shared_ptr<Config> config);
  bool only_named = false;  ///< too large for most machines: left out where no row is named
};

/// All benchmarks of the list, in the order of the table.
std::span<const Row> rows();

/// A usage error with the nearest name unless `name` is a benchmark of the list, a preset or a .toml file.
/// `part` of `heed bench` is named in the error.
void check_name(const std::string& name, const char* part);

/// Makes the workload of a benchmark of the list, a preset or a .toml file, with the settings of the command
/// line.
Workload workload(const std::string& name, const ParsedArguments& arguments);

}  // namespace heed::bench
