// A classifier of the rows of a CSV file: csv_classifier plants.csv
#include <heed/heed.h>

#include <cstdio>

using namespace heed;

struct Net final : Module {
  Net(int64_t features, int64_t species, Rng& rng) : hidden(features, 32, rng), classes(32, species, rng) {}
  Tensor operator()(const Tensor& x, const ForwardContext& context) const {
    return classes(dropout(relu(hidden(x)), 0.1, context.rng));
  }
  void fields(Fields& f) override {
    f("hidden", hidden);
    f("classes", classes);
  }
  Linear hidden, classes;
};

int main(int, char** argv) {
  const CsvTable table = read_csv(argv[1]);
  const auto measured = table.columns_without({"species"});
  const TensorDataset plants({table.numbers(measured), table.classes("species")});
  const auto [training, held_out] = random_split(plants, 0.8);
  DataLoader loader(training, {.batch_size = 16, .shuffle = true}), validation(held_out);

  Rng rng(1);
  Net net(std::ssize(measured), std::ssize(table.class_names("species")), rng);
  const auto loss = [](const Net& model, const Batch& batch, const ForwardContext& context) {
    const Tensor logits = model(batch[0], context);
    return LossOutput{cross_entropy(logits, batch[1]), logits, batch[1]};
  };
  fit(net, loader, loss, {.epochs = 60, .validation = &validation, .metrics = {accuracy(), mean_loss()}});
  std::printf("accuracy %.2f\n", evaluate(net, validation, loss, {accuracy()}).first());
  save(net, "plants.safetensors");
}
