// Metrics that sum over batches.
#include "heed/train/metrics/metric.h"

#include <algorithm>
#include <cmath>

#include "heed/train/metrics/perplexity.h"

namespace heed {
namespace {

/// A mean of numbers with weights.
struct WeightedMean {
  double sum = 0, weight = 0;
  double value() const { return weight > 0 ? sum / weight : NAN; }
};

class Accuracy final : public Metric {
 public:
  explicit Accuracy(int32_t ignore) : ignore_(ignore) {}
  std::string name() const override { return "accuracy"; }
  bool lower_is_better() const override { return false; }
  void reset() override { mean_ = {}; }
  double value() const override { return mean_.value(); }

  void add(const LossOutput& output, const Batch&) override {
    const Tensor &logits = output.logits, &targets = output.targets;
    if (!logits || !targets)
      fail(
          "accuracy: the loss function gives no logits and targets. Return "
          "LossOutput{loss, logits, targets} from it.");
    const int64_t classes = logits.rank() > 0 ? logits.extent(-1) : 0;
    if (classes < 1 || targets.size() * classes != logits.size())
      fail("accuracy: logits ", logits.shape(), " do not fit targets ", targets.shape(),
           ". They must be [..., classes] and [...].");
    const std::vector<float> values = logits.detach().to_host();
    const std::vector<double> labels = targets.to_doubles();
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == ignore_) continue;
      const auto row = values.begin() + static_cast<int64_t>(i) * classes;
      const auto predicted = static_cast<double>(std::max_element(row, row + classes) - row);
      mean_.sum += predicted == labels[i] ? 1 : 0;
      ++mean_.weight;
    }
  }

 private:
  int32_t ignore_;
  WeightedMean mean_;
};

class MeanLoss final : public Metric {
 public:
  explicit MeanLoss(bool exponential) : exponential_(exponential) {}
  std::string name() const override { return exponential_ ? "perplexity" : "loss"; }
  bool lower_is_better() const override { return true; }
  void reset() override { mean_ = {}; }
  double value() const override { return exponential_ ? perplexity_of(mean_.value()) : mean_.value(); }

  void add(const LossOutput& output, const Batch& batch) override {
    const double weight = output.weight > 0 ? output.weight : batch.weight;
    mean_.sum += output.loss.item() * weight;
    mean_.weight += weight;
  }

 private:
  bool exponential_;
  WeightedMean mean_;
};

}  // namespace

std::shared_ptr<Metric> accuracy(int32_t ignore) { return std::make_shared<Accuracy>(ignore); }
std::shared_ptr<Metric> mean_loss() { return std::make_shared<MeanLoss>(false); }
std::shared_ptr<Metric> perplexity() { return std::make_shared<MeanLoss>(true); }

}  // namespace heed
