// Canonical names of problems: what measurements are kept under. Two problems that a kernel cannot tell apart but by the numbers in their tensors have the
// same key, on whatever rank and in whatever model they stand: shapes, types, ops and the attributes that shape the work count; where a part lies in
// the whole, streams of random numbers and real-valued constants do not.
#pragma once

#include <string>

#include "program/costs.h"

namespace convoy {

// "conv k3x3 s1x1 d1x1 p1x1 q1x1 g1 (0 1 -> 3); bias a1 (3 2 -> 4) | 8x64x56x56 64x64x3x3 64 -> 8x64x56x56 | f32"
std::string key_of(const Problem& problem);
// A candidate among those of its problem: the algorithm and the (settled) layouts and types of its operands. "onednn-conv:direct:blocked ABcd16b,.. -> ABcd16b"
std::string key_of(const Candidate& candidate);
// "copy 8x64x56x56 plain f32 -> ABcd16b f32"
std::string key_of(const CopyProblem& copy);

}  // namespace convoy
