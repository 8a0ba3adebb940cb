// A program that calls fit(), for tests that start it by mpirun: fit_program FOLDER [stop|fail|differ]
#include <heed/heed.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "heed/core/io/hash.h"

using namespace heed;

namespace {

/// Points in the plane, and whether they lie outside of the unit circle.
TensorDataset points(int64_t count) {
  Rng rng(1);
  Tensor x(Shape{count, 2});
  fill_uniform(x, -1.5, 1.5, rng);
  const std::vector<float> at = x.to_host();
  std::vector<int32_t> outside;
  for (size_t i = 0; i < at.size(); i += 2)
    outside.push_back(at[i] * at[i] + at[i + 1] * at[i + 1] > 1 ? 1 : 0);
  return TensorDataset({x, Tensor::of<int32_t>(outside, Shape{count})});
}

struct Net final : Module {
  explicit Net(Rng& rng) : hidden(2, 16, rng), classes(16, 2, rng) {}
  Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    return classes(dropout(relu(hidden(x)), 0.1, context.rng));
  }
  void fields(Fields& f) override {
    f("hidden", hidden);
    f("classes", classes);
  }
  Linear hidden, classes;
};

/// Raises SIGTERM in the second process after step 5.
struct StopAtFive final : Callback {
  void after_step(const TrainContext& context, const StepResult&) override {
    if (context.step == 5 && !context.group.is_main()) std::raise(SIGTERM);
  }
};

int run(const std::string& folder, const std::string& mode) {
  ProcessGroup& group = join_processes();
  const bool is_second = group.rank() == 1;
  const TensorDataset all = points(mode == "differ" && is_second ? 90 : 100);
  DataLoader loader(all, {.batch_size = 15, .shuffle = true}), validation(all, {.batch_size = 50});
  Rng rng(5);
  Net net(rng);
  int calls = 0;
  const auto loss = [&](Net& model, const Batch& batch, const ForwardContext& context) {
    if (mode == "fail" && is_second && ++calls == 3) fail(Fault::data, "the third batch is bad");
    return cross_entropy(model(batch[0], context), batch[1]);
  };
  StopAtFive stop;
  FitOptions options{.epochs = 3, .validation = &validation, .folder = folder};
  options.schedule.learning_rate = 1e-2;
  if (mode == "stop") options.callbacks = {&stop};
  const FitResult result = fit(net, loader, loss, options);
  const std::string weights = sha256_hex(save_bytes(net));
  for (const std::string& line :
       group.all_gather(text("step ", result.step, " best ", result.best.first(), " weights ", weights))) {
    if (group.is_main()) std::printf("%s\n", line.c_str());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count > 1 ? arguments[1] : "run", count > 2 ? arguments[2] : "");
  } catch (const Error& error) {  // every process gets it
    if (join_processes().is_main()) std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.fault());
  }
}
