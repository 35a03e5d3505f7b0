// Two ways to compile one step, run against each other.
#pragma once

#include "exec/session.h"
#include "tune/cost_table.h"

namespace convoy {

// Runs both steps in turns for about so long, and up to three times that when they are close, on made-up data and with a learning rate of 0, so that
// nothing drifts. All ranks call it together; the first rank's clock counts, and its verdict is everybody's.
Verdict race(const Graph& graph, const SessionOptions& untuned, const SessionOptions& tuned, double seconds);

}  // namespace convoy
