// Tasks of the Long Range Arena whose inputs are grey pictures: tokens are pixels or square patches of them.
#pragma once

#include "heed/train/tasks/lra/lra.h"

namespace heed {

/// A task that classifies square pictures of one byte a pixel. By default each pixel is a token, as in the
/// benchmark; with model.patch above 1 a square of pixels is one, as in Dosovitskiy et al. 2021, arXiv
/// 2010.11929. Subclasses provide the pictures.
class PictureTask : public LongTask {
 protected:
  /// Statistics of the benchmark's greys, 0 to 255, by which patches are standardised.
  struct Greys {
    double mean;       ///< mean of all pixels
    double deviation;  ///< standard deviation of all pixels
  };
  /// Pictures of `resolution` pixels a side, all of which the model reads by default.
  PictureTask(int64_t resolution, Greys greys) : resolution_(resolution), side_(resolution), greys_(greys) {}

  void more_fields(Fields& f) override;
  void more_model_fields(Fields& f) override;
  void check_more(const Config&) const override;
  Tokens tokens() const override;
  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override;
  std::shared_ptr<TokenPicture> picture(std::string_view bytes) const override;
  std::string token_name(uint8_t byte, int64_t place) const override;

  /// Pictures of resolution_ pixels a side, row by row, as the model reads them: averaged down to data.side,
  /// then patch by patch.
  Sequences as_read(Sequences pictures) const;

  int64_t resolution_;  ///< pixels a side of the data

 private:
  enum class PixelZero { token, pad } zero_ = PixelZero::token;
  int64_t side_, patch_ = 1;
  Greys greys_;
};

}  // namespace heed
