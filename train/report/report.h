// report.html of a run: one page without network access.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/attention/inspect/map_view.h"
#include "heed/train/metrics/evaluation.h"
#include "heed/train/report/chart.h"

namespace heed {

/// A number at the top of the report: "BLEU", "62.4", "greedy, 1,000 pairs".
struct ReportCard {
  std::string name{};                 ///< "BLEU"
  std::string value{};                ///< "62.4"
  std::string note{};                 ///< "greedy, 1,000 pairs"
  std::vector<std::string> beside{};  ///< notes and baselines, one line each
};

/// A setting whose value is not the one that the run began from.
struct ReportSetting {
  std::string key{};     ///< "train.batch_size"
  std::string value{};   ///< value in the run
  std::string before{};  ///< value that the run began from
};

/// The settings of a run: those that were changed, and all of them.
struct ReportSettings {
  std::string from{};                    ///< what they are compared with: "preset translate"; empty: nothing
  std::vector<ReportSetting> changed{};  ///< in the order of `all`
  std::string all{};                     ///< config.toml as text; empty: no section is shown
};

/// A cell of a table of settings: the value as HTML, "none" for an empty one.
std::string setting_cell(const std::string& value);
/// All settings as text that is folded under `summary`; both become HTML.
std::string folded_settings(const std::string& summary, const std::string& all);

/// The section of a page: changed settings as a table, and all of them folded.
std::string settings_section(const ReportSettings& settings);

/// The contents of a report. Empty parts are omitted.
struct ReportData {
  std::string title = "Training report";  ///< title and heading of the page
  std::string subtitle{};                 ///< the run folder, the date
  std::vector<ReportCard> cards{};        ///< final metrics, best step, parameters, device, seed, time
  std::vector<Chart> charts{};            ///< loss, learning rate, gradient norm, tokens/s, BLEU
  std::vector<ReportSample> samples{};    ///< samples of the test split
  std::vector<MapView> maps{};            ///< attention maps of one sentence
  std::string maps_caption{};             ///< the sentence and its translation
  std::optional<Confusion> confusion{};   ///< empty: the task is no classifier
  ReportSettings settings{};              ///< below the cards
};

/// The script for hover, logarithmic scale and saving of a page's charts; needs picture::tools_script.
inline constexpr std::string_view charts_script = "train/report/charts.js";

/// The whole page; it loads nothing, so it works as a local file. Fault::data when a part is inconsistent.
std::string report_html(const ReportData& report);

}  // namespace heed
