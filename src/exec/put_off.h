// Work that was put off: a part of a step, carried into the next. Whoever uses what it works on (a state, or the lanes of a link) has it done first.
#pragma once

namespace convoy {

class Pending {
  public:
    virtual ~Pending() = default;
    // Does it now.
    virtual void settle() = 0;
};

class PutOff {
  public:
    // Who puts off work, says so.
    void add(Pending* work) { pending_ = work; }
    void remove(const Pending* work) {
        if (pending_ == work) pending_ = nullptr;
    }
    // Has done what is put off by others.
    void settle(const Pending* but = nullptr) const {
        if (pending_ && pending_ != but) pending_->settle();
    }

  private:
    Pending* pending_ = nullptr;
};

}  // namespace convoy
