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

/// A model and the loss of its steps. Step i and step i + period have equal shapes.
struct Workload {
  std::shared_ptr<Config> config;
  std::unique_ptr<Module> model;
  int64_t period = 1;
  std::function<Batch(int64_t step)> batch;
  std::function<Tensor(const Batch&, const ForwardContext&)> loss;
  std::function<double(int64_t step)> tokens;  ///< real tokens: of targets, or of an encoder's input
};

/// A named workload to compare performance on. Its tokens are random: it needs no data.
struct Row {
  const char* name;
  const char* about;
  const char* preset;  ///< preset with its settings; empty: train/bench/workloads/NAME.toml has them
  Workload (*make)(std::shared_ptr<Config> config);
};

/// All rows.
std::span<const Row> rows();

/// A usage error with the nearest name if this is no row, preset or .toml file; `part` is the part of the
/// bench.
void check_name(const std::string& name, const char* part);

/// The workload of a row, a preset or a .toml file, changed by the call's options.
Workload workload(const std::string& name, const ParsedArguments& arguments);

}  // namespace heed::bench
