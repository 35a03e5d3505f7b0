// The whole program behind main: parses the command line, runs the command, and turns what went wrong into one line on standard error.
#pragma once

namespace convoy {

// Exit codes: 0 done; 1 the command failed; 2 the command line is wrong; 128 + the signal's number when it was interrupted.
int run_app(int argc, const char* const* argv);

}  // namespace convoy
