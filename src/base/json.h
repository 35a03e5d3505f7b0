// JSON is nlohmann's, under one name. Objects keep the order in which their keys were written, so that files read well.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json_fwd.h"
