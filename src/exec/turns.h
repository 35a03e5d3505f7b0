// Ranks of one machine take turns at what needs much memory: together they might need more than there is.
#pragma once

#include "exec/link.h"

namespace convoy {

class Turns {
  public:
    // Collective over the ranks of the link. A rank that cannot reach the first one's files (on another machine) takes no turns.
    explicit Turns(Link* link);
    ~Turns();
    Turns(const Turns&) = delete;
    Turns& operator=(const Turns&) = delete;

    // A rank's turn, from when it is its until this is destroyed. Nobody may wait for other ranks meanwhile.
    class Turn {
      public:
        explicit Turn(const Turns& turns);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

      private:
        int file_;
    };

  private:
    int file_ = -1;
};

}  // namespace convoy
