// From what was read to what is shown.
#pragma once

#include "report/report_data.h"
#include "report/sources.h"

namespace convoy {

ReportData report_of(const RunSources& run);
ReportData report_of(const SimulationSources& simulation);

// Of a run directory or a simulation, whichever `path` is, with its source filled in. Error when it is neither, or something in it is broken.
ReportData read_report(const std::filesystem::path& path);

}  // namespace convoy
