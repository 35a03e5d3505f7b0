// The page: the template, style and scripts of web/, which the build puts into the program, with a report's data in it. One file that needs nothing else.
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace convoy {

// `data` as to_json(ReportData) gives it.
std::string page_of(const Json& data);

}  // namespace convoy
