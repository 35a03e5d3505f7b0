// Samples and seconds of training, for rates.
#pragma once

#include <cmath>
#include <cstdint>

namespace convoy {

struct Tally {
    double samples = 0, seconds = 0, waited = 0;
    int64_t bytes = 0;
    double joules = 0;
    double watts() const { return seconds > 0 ? joules / seconds : 0; }
    double rate() const { return seconds > 0 ? samples / seconds : 0; }
    void add(double more_samples, double more_seconds, double more_waited) {
        samples += more_samples;
        seconds += more_seconds;
        waited += more_waited;
    }
    // Forgets what lies much longer back than `span` seconds.
    void fade(double elapsed, double span) {
        const double factor = std::exp(-elapsed / span);
        samples *= factor;
        seconds *= factor;
        waited *= factor;
    }
};

}  // namespace convoy
