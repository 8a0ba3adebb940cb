// Charts of what a run has logged.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/train/report/chart.h"
#include "heed/train/run/metrics_log.h"

namespace heed {

/// A chart of the series named here, with their labels, as far as they were logged; `mark` as in Chart.
Chart chart_of(const std::vector<MetricSeries>& logged, const std::string& title,
               const std::vector<std::pair<std::string, std::string>>& names, double mark);

/// A chart for each score of the validations, whatever task gave it, in the order of the log; the losses,
/// which are drawn beside that of training, have none.
std::vector<Chart> score_charts(const std::vector<MetricSeries>& logged, double mark);

}  // namespace heed
