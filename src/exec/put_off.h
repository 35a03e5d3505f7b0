// Work that was put off: a part of a step, carried into the next. Whoever uses what it works on, a state or the lanes of a link, has it done first.
#pragma once

#include <exception>
#include <utility>

#include "base/error.h"

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
    void add(Pending* work) {
        CONVOY_CHECK(!pending_ || pending_ == work, "work is put off before that of another is done");
        pending_ = work;
    }
    void remove(const Pending* work) {
        if (pending_ == work) pending_ = nullptr;
    }
    // It was not done and never will be: whoever needs it learns why.
    void fail(std::exception_ptr why) {
        if (!failure_) failure_ = std::move(why);
    }
    // Has done what is put off by others.
    void settle(const Pending* but = nullptr) const {
        if (failure_) std::rethrow_exception(failure_);
        if (pending_ && pending_ != but) pending_->settle();
    }

  private:
    Pending* pending_ = nullptr;
    std::exception_ptr failure_;
};

}  // namespace convoy
