// Algorithms of all_reduce that work by halves and doubles, and the tree. The operand of the lower place always stands on the left, so that both
// sides of an exchange compute the same bits.
#include <algorithm>

#include "comm/algorithms/algorithms.h"

namespace convoy {

namespace {

int largest_power_of_two(int n) {
    int power = 1;
    while (power * 2 <= n) power *= 2;
    return power;
}

// Folding: with p = 2^k + r places, the first 2r form pairs whose even place hands its data to the odd one and waits. What is left are 2^k
// places, numbered from 0 in the same order.
struct Folded {
    explicit Folded(const Team& team) : size(largest_power_of_two(team.size())), pairs(team.size() - size) {
        if (team.place >= 2 * pairs)
            number = team.place - pairs;
        else if (team.place % 2 == 1)
            number = team.place / 2;
    }
    int place_of(int n) const { return n < pairs ? 2 * n + 1 : n + pairs; }

    int size, pairs;
    int number = -1;  // this place's, or -1 when it waits
};

template <class Body>
void folded(const Team& team, const Elements& elements, std::byte* data, int64_t count, const Body& body) {
    const Folded fold(team);
    const bool paired = team.place < 2 * fold.pairs;
    if (fold.number < 0) {
        send_pieces(team, elements, team.place + 1, data, count);
        team.steps.wait_all();
        team.receive(team.place + 1, data, count * elements.size);
        team.steps.wait_all();
        return;
    }
    if (paired) run(team, elements, {.peer = team.place - 1, .data = data, .count = count, .theirs_first = true});
    body(fold);
    if (paired) team.send(team.place - 1, data, count * elements.size);
    team.steps.wait_all();
}

// The part of the vector that a number holds after it has been halved down to `width` of the `size` pieces.
struct Range {
    int64_t first, count;
};
Range range_of(const std::vector<int64_t>& offsets, int number, int width) {
    const auto low = static_cast<size_t>(number / width * width);
    return {offsets[low], offsets[low + static_cast<size_t>(width)] - offsets[low]};
}

// Binomial tree: a place's parent has its lowest set bit cleared.
int lowest_bit(int place) { return place & -place; }

}  // namespace

void all_reduce_recursive_doubling(const Team& team, const Elements& elements, std::byte* data, int64_t count) {
    folded(team, elements, data, count, [&](const Folded& fold) {
        std::byte* const theirs = team.steps.scratch(count * elements.size);
        for (int mask = 1; mask < fold.size; mask *= 2) {
            const int peer = fold.place_of(fold.number ^ mask);
            team.receive(peer, theirs, count * elements.size);
            team.send(peer, data, count * elements.size);
            team.steps.wait_all();
            const bool first = peer < team.place;
            elements.combine(data, first ? theirs : data, first ? data : theirs, count);
        }
    });
}

void all_reduce_rabenseifner(const Team& team, const Elements& elements, std::byte* data, int64_t count) {
    folded(team, elements, data, count, [&](const Folded& fold) {
        const auto offsets = offsets_of(even_counts(count, fold.size));
        const auto at = [&](int64_t element) { return data + element * elements.size; };
        for (int width = fold.size / 2; width >= 1; width /= 2) {
            const int other = fold.number ^ width;
            const Range mine = range_of(offsets, fold.number, width), theirs = range_of(offsets, other, width);
            run(team, elements,
                {.peer = fold.place_of(other),
                 .send = at(theirs.first),
                 .send_count = theirs.count,
                 .data = at(mine.first),
                 .count = mine.count,
                 .theirs_first = other < fold.number});
        }
        for (int width = 1; width < fold.size; width *= 2) {
            const int other = fold.number ^ width;
            const Range mine = range_of(offsets, fold.number, width), theirs = range_of(offsets, other, width);
            team.receive(fold.place_of(other), at(theirs.first), theirs.count * elements.size);
            team.send(fold.place_of(other), at(mine.first), mine.count * elements.size);
            team.steps.wait_all();
        }
    });
}

void all_reduce_tree(const Team& team, const Elements& elements, std::byte* data, int64_t count) {
    for (int bit = 1; bit < team.size(); bit *= 2) {
        if (team.place & bit) {
            send_pieces(team, elements, team.place - bit, data, count);
            team.steps.wait_all();
            break;
        }
        if (team.place + bit < team.size()) run(team, elements, {.peer = team.place + bit, .data = data, .count = count});
    }
    broadcast_tree(team, data, count * elements.size, 0);
}

void broadcast_tree(const Team& team, std::byte* data, int64_t bytes, int root) {
    const int size = team.size(), number = (team.place - root + size) % size;
    const auto place_of = [&](int n) { return (n + root) % size; };
    std::vector<int> children;
    for (int bit = 1; bit < size && !(number & bit); bit *= 2)
        if (number + bit < size) children.insert(children.begin(), place_of(number + bit));  // the largest branch first
    struct Piece {
        int64_t first, bytes;
        Steps::Index received;
    };
    std::vector<Piece> pieces;
    for (int64_t first = 0; first < bytes; first += team.steps.segment_bytes())
        pieces.push_back({first, std::min(team.steps.segment_bytes(), bytes - first), Steps::kNothing});
    if (number != 0)
        for (Piece& piece : pieces) piece.received = team.receive(place_of(number - lowest_bit(number)), data + piece.first, piece.bytes);
    for (const Piece& piece : pieces) {
        team.steps.wait(piece.received);
        for (const int child : children) team.send(child, data + piece.first, piece.bytes);
    }
    team.steps.wait_all();
}

}  // namespace convoy
