// The ring: the vector is cut into one chunk per place. In p-1 steps every chunk travels round and is added to, so that place i ends with the
// whole sum of chunk i+1; in p-1 more steps the sums travel round. In step k a place sends chunk (place - k) and receives chunk (place - k - 1),
// which is what it sends in the next step. So a piece of a chunk is sent on as soon as it is combined, without waiting for the rest of the step.
#include <algorithm>

#include "comm/algorithms/algorithms.h"

namespace convoy {

namespace {

struct Piece {
    int step;
    int64_t first, count;  // elements of the vector
    size_t id;             // the same for the same elements, whatever the step
};

class Ring {
  public:
    Ring(const Team& team, const Elements& elements, std::byte* data, int64_t count)
        : team_(team), elements_(elements), data_(data), offsets_(offsets_of(even_counts(count, team.size()))) {}

    void run() {
        const int steps = 2 * (team_.size() - 1);
        for (int step = 0; step < steps; ++step) append(incoming_, step, team_.place - step - 1);
        append(outgoing_, 0, team_.place);
        own_ = outgoing_.size();
        for (const Piece& piece : incoming_)
            if (piece.step + 1 < steps) outgoing_.push_back(piece);
        sent_.assign(id_of(team_.size(), 0), Steps::kNothing);
        slots_ = team_.steps.scratch(Steps::kWindow * elements_.per_segment() * elements_.size);
        received_.assign(incoming_.size(), Steps::kNothing);
        send_up_to(Steps::kWindow);
        for (size_t i = 0; i < std::min<size_t>(Steps::kWindow, incoming_.size()); ++i) post(i);
        for (size_t i = 0; i < incoming_.size(); ++i) {
            take(i);
            send_up_to(taken_ + Steps::kWindow);
            if (i + Steps::kWindow < incoming_.size()) post(i + Steps::kWindow);
        }
        send_up_to(outgoing_.size());
        team_.steps.wait_all();
    }

  private:
    bool adds(const Piece& piece) const { return piece.step < team_.size() - 1; }
    std::byte* at(int64_t element) const { return data_ + element * elements_.size; }
    std::byte* slot(size_t i) const { return slots_ + static_cast<int64_t>(i % Steps::kWindow) * elements_.per_segment() * elements_.size; }

    void append(std::vector<Piece>& pieces, int step, int chunk) const {
        const int p = team_.size(), c = ((chunk % p) + p) % p;
        const int64_t end = offsets_[static_cast<size_t>(c) + 1];
        size_t number = 0;
        for (int64_t first = offsets_[static_cast<size_t>(c)]; first < end; first += elements_.per_segment())
            pieces.push_back({step, first, std::min(elements_.per_segment(), end - first), id_of(c, number++)});
    }

    // Chunk 0 is the largest.
    size_t id_of(int chunk, size_t number) const {
        const int64_t most = (offsets_[1] + elements_.per_segment() - 1) / elements_.per_segment();
        return static_cast<size_t>(chunk) * static_cast<size_t>(most) + number;
    }

    void post(size_t i) {
        const Piece& piece = incoming_[i];
        if (!adds(piece)) team_.steps.wait(sent_[piece.id]);  // it overwrites what may still be on its way out from an earlier step
        received_[i] = team_.receive(team_.place - 1, adds(piece) ? slot(i) : at(piece.first), piece.count * elements_.size);
    }

    // First what is there from the start, then what has been taken, in that order.
    void send_up_to(size_t limit) {
        for (; next_ < std::min({limit, own_ + taken_, outgoing_.size()}); ++next_) {
            const Piece& piece = outgoing_[next_];
            sent_[piece.id] = team_.send(team_.place + 1, at(piece.first), piece.count * elements_.size);
        }
    }

    void take(size_t i) {
        const Piece& piece = incoming_[i];
        team_.steps.wait(received_[i]);
        if (adds(piece)) elements_.combine(at(piece.first), slot(i), at(piece.first), piece.count);
        ++taken_;
    }

    const Team& team_;
    const Elements& elements_;
    std::byte* data_;
    std::vector<int64_t> offsets_;
    std::vector<Piece> incoming_, outgoing_;
    size_t own_ = 0, taken_ = 0, next_ = 0;      // of outgoing_: this place's own chunk; pieces of incoming_ taken; the next of outgoing_
    std::vector<Steps::Index> received_, sent_;  // by place in incoming_; by id
    std::byte* slots_ = nullptr;
};

}  // namespace

void all_reduce_ring(const Team& team, const Elements& elements, std::byte* data, int64_t count) {
    Ring(team, elements, data, count).run();
}

}  // namespace convoy
