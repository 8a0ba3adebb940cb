// report.html of a run: what happened, in one offline file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention/map_view.h"
#include "train/chart.h"

namespace heed {

/// A number at the head of the report: "BLEU", "62.4", "greedy, 1,000 pairs".
struct ReportCard {
  std::string name{}, value{}, note{};
  std::vector<std::string> beside{};  ///< what the number is to be read beside, a line each
};

/// One row of the table of samples; the reference may be empty.
struct ReportSample {
  std::string source{}, reference{}, hypothesis{};
};

/// Counts of a classifier: rows are true classes, columns are predictions.
struct Confusion {
  std::vector<std::string> labels{};
  std::vector<int64_t> counts{};  ///< [labels, labels]
};

/// Everything that the report shows. Empty parts are left out of the page.
struct ReportData {
  std::string title = "Training report";
  std::string subtitle{};           ///< the run folder, the date
  std::vector<ReportCard> cards{};  ///< final metrics, best step, parameters, device, seed, time
  std::vector<Chart> charts{};      ///< loss, learning rate, gradient norm, tokens/s, BLEU
  std::vector<ReportSample> samples{};
  std::vector<MapView> maps{};  ///< the attention maps of one sentence
  std::string maps_caption{};   ///< that sentence and its translation
  std::optional<Confusion> confusion{};
  std::string settings{};  ///< config.toml as text
};

/// The whole page; it loads nothing and runs from a local file. Throws a data Error when a part is
/// inconsistent.
std::string report_html(const ReportData& report);

namespace picture {

/// Hover, logarithmic scale and saving for the charts of a page; needs script_tools().
std::string_view script_charts();

}  // namespace picture
}  // namespace heed
