// What a benchmark of training repeats: a model, its optimizer, and steps of known row.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "train/commands/verb.h"
#include "train/optimizer.h"
#include "train/task.h"

namespace heed::bench {

/// A model and the loss of its steps. Step i and step i + period have the same shapes.
struct Workload {
  std::shared_ptr<Config> config;
  std::unique_ptr<Module> model;
  int64_t period = 1;
  std::function<Batch(int64_t step)> batch;
  std::function<Tensor(const Batch&, const Pass&)> loss;
  std::function<double(int64_t step)> tokens;  ///< that are no padding: targets, or positions of an encoder
};

/// A shape that performance is compared on. Its tokens are random: no data is needed.
struct Row {
  const char* name;
  const char* about;
  const char* base;      ///< a preset it begins with; empty: none
  const char* settings;  ///< TOML, as in presets
  Workload (*make)(std::shared_ptr<Config> config);
};

std::span<const Row> rows();

/// Fails with the nearest name where this is no row, no preset and no .toml file; `part` of the bench asks.
void check_name(const std::string& name, const char* part);

/// A row, a preset or a .toml file by name, changed by the options of the call.
Workload workload(const std::string& name, const Invocation& call);

}  // namespace heed::bench
