// A line chart for a terminal.
#pragma once

#include <cstdint>
#include <string>

#include "heed/train/report/chart.h"

namespace heed {

/// The chart's series as stars over its x axis, `columns` wide and `rows` high besides axis and labels; the
/// marked x as a column of bars. Where a column holds several points, their mean is shown. Linear in y. Empty
/// when no value is finite. Fault::data when x and y of a series differ in length.
std::string chart_text(const Chart& chart, int64_t columns, int64_t rows);

}  // namespace heed
