// A search for a plan, as tables for people and as JSON.
#pragma once

#include <string>

#include "app/output.h"
#include "plan/search_free.h"
#include "plan/what_if.h"

namespace convoy {

// "found on sample:2,height:2", the time against pure data parallelism, memory: a few lines.
std::string summary(const SearchResult& result, const SearchCase& what);
// All plans that were simulated, the layers with reasons (the first `most`, 0: all).
void print(const Output& output, const SearchResult& result, size_t most);
void print(const Output& output, const std::vector<WhatIf>& gains);
// Several cases side by side.
void print(const Output& output, const FreeResult& result, Objective objective);

Json to_json(const SearchResult& result, const SearchCase& what);
Json to_json(const std::vector<WhatIf>& gains);

}  // namespace convoy
