#include "program/labelling.h"

#include <algorithm>

namespace convoy::labelling {

Builder::Builder(const Types& in, const Types& out) {
    for (const auto& t : in) result_.inputs.emplace_back(static_cast<size_t>(t.shape.size()));
    for (const auto& t : out) result_.outputs.emplace_back(static_cast<size_t>(t.shape.size()));
}

Builder& Builder::label(std::string name, int64_t length, const Places& places) {
    const int id = static_cast<int>(result_.labels.size());
    result_.labels.push_back({std::move(name), length});
    for (const At& at : places)
        (at.output ? result_.outputs : result_.inputs)[at.operand][static_cast<size_t>(at.dim)] = {id, at.scale, at.derived};
    return *this;
}

std::string dim_name(int dim, int rank) {
    if (dim == 0) return "sample";
    if (dim == 1) return "channel";
    return spatial_name(dim - 2, rank - 2);
}

Signature by_dim(const Types& in, const Types& out, const Shape& shape, const std::function<Places(int dim)>& places) {
    Builder b(in, out);
    for (int d = 0; d < shape.size(); ++d)
        if (const Places at = places(d); !at.empty()) b.label(dim_name(d, shape.size()), shape[d], at);
    return b;
}

Signature passing_sums(Signature signature) {
    signature.linear = true;
    return signature;
}

Signature convolution(const Types& in, const Types& out, const Directed& direction, int64_t groups) {
    const auto& [px, pw, py] = direction;
    const Shape &x = px.shape(in, out), &y = py.shape(in, out);
    const int rank = x.size() - 2;
    Builder b(in, out);
    b.label("sample", x[0], {px.at(0), py.at(0)});
    for (int i = 0; i < rank; ++i) {
        // The anchor is what is made, or dy: the other one is read as its windows say.
        const int d = 2 + i;
        At ax = px.at(d), ay = py.at(d);
        (px.output ? ay : ax).derived = true;
        b.label(spatial_name(i, rank), px.output ? x[d] : y[d], {ax, ay});
    }
    if (groups > 1) {
        b.label("group", groups, {px.at(1, x[1] / groups), pw.at(0, y[1] / groups), py.at(1, y[1] / groups)});
    } else {
        b.label("channel", x[1], {px.at(1), pw.at(1)});
        b.label("filter", y[1], {pw.at(0), py.at(1)});
    }
    return b;
}

Signature fully_connected(const Types& in, const Types& out, const Directed& direction) {
    const auto& [px, pw, py] = direction;
    const Shape &x = px.shape(in, out), &y = py.shape(in, out);
    return Builder(in, out)
        .label("sample", x[0], {px.at(0), py.at(0)})
        .label("channel", x[1], {px.at(1), pw.at(1)})
        .label("filter", y[1], {pw.at(0), py.at(1)});
}

Signature local_convolution(const Types& in, const Types& out, const Directed& direction) {
    const auto& [px, pw, py] = direction;
    const Shape &x = px.shape(in, out), &y = py.shape(in, out);
    const int rank = x.size() - 2;
    Builder b(in, out);
    b.label("sample", x[0], {px.at(0), py.at(0)});
    if (!px.output)  // the weights lie at output positions: only what is indexed by them is cut in space
        for (int i = 0; i < rank; ++i) b.label(spatial_name(i, rank), y[2 + i], {At::read(px.operand, 2 + i), pw.at(1 + i), py.at(2 + i)});
    b.label("channel", x[1], {px.at(1), pw.at(1 + rank)});
    b.label("filter", y[1], {pw.at(0), py.at(1)});
    return b;
}

Signature elementwise(const Types& in, const Types& out) {
    const Shape& shape = out[0].shape;
    return by_dim(in, out, shape, [&](int d) {
        Places places;
        for (size_t i = 0; i < in.size(); ++i)
            if (in[i].shape == shape) places.push_back(At::in(i, d));
        for (size_t o = 0; o < out.size(); ++o)
            if (out[o].shape == shape) places.push_back(At::out(o, d));
        return places;
    });
}

Signature windowed(const Types& in, const Types& out, bool spatial) {
    return by_dim(in, out, out[0].shape, [&](int d) {
        Places places;
        if (d >= 2 && !spatial) return places;
        for (size_t i = 0; i < in.size(); ++i) places.push_back(d < 2 ? At::in(i, d) : At::read(i, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(At::out(o, d));
        return places;
    });
}

Signature all_but(const Types& in, const Types& out, int axis) {
    return by_dim(in, out, out[0].shape, [&](int d) {
        Places places;
        if (d == axis) return places;
        for (size_t i = 0; i < in.size(); ++i) places.push_back(At::in(i, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(At::out(o, d));
        return places;
    });
}

Signature per_channel(const Types& in, const Types& out, const std::vector<size_t>& in_activations, bool out_activation) {
    const Shape& x = in[0].shape;
    return by_dim(in, out, x, [&](int d) {
        Places places;
        const auto add = [&](const Shape& s, bool activation, bool output, size_t operand) {
            if (activation)
                places.push_back({output, operand, d});
            else if (d == 1 && s.back() == x[1])
                places.push_back({output, operand, s.size() - 1});
        };
        for (size_t i = 0; i < in.size(); ++i)
            add(in[i].shape, std::find(in_activations.begin(), in_activations.end(), i) != in_activations.end(), false, i);
        for (size_t o = 0; o < out.size(); ++o) add(out[o].shape, out_activation, true, o);
        return places;
    });
}

Signature cells(const Cells& cells, const Types& in, const Types& out, const std::vector<CellRole>& in_roles, CellRole out_role) {
    const Shape& x = in[0].shape;
    const int first_inner = cells.groups > 0 ? 2 : cells.axis;
    return by_dim(in, out, x, [&](int d) {
        Places places;
        if (d > 0 && d < first_inner) return places;  // channels of groups, or dims that number the cells below the first
        const auto add = [&](CellRole role, const Shape& s, bool output, size_t operand) {
            if (role == CellRole::Activation)
                places.push_back({output, operand, d});
            else if (role == CellRole::Cells && d == 0)
                places.push_back({output, operand, 1, s[1] / x[0]});
            else if (role == CellRole::Affine && cells.groups == 0 && d >= cells.axis)
                places.push_back({output, operand, d - cells.axis});
        };
        for (size_t i = 0; i < in.size(); ++i) add(in_roles[i], in[i].shape, false, i);
        for (size_t o = 0; o < out.size(); ++o) add(out_role, out[o].shape, true, o);
        return places;
    });
}

Signature rearranged(const Types& in, const Types& out, const std::vector<bool>& moves) {
    return by_dim(in, out, out[0].shape, [&](int d) {
        Places places{At::out(0, d)};
        for (size_t i = 0; i < in.size(); ++i) places.push_back(moves[static_cast<size_t>(d)] ? At::read(i, d) : At::in(i, d));
        return places;
    });
}

Signature logits_and_targets(const Types& in, const Types& out) {
    const Shape& logits = in[0].shape;
    return by_dim(in, out, logits, [&](int d) {
        Places places;
        if (d == 1) return places;
        places = {At::in(0, d), At::in(1, d == 0 ? 0 : d - 1)};
        if (out[0].shape == logits) places.push_back(At::out(0, d));
        return places;
    });
}

Signature update(const Types& in, const Types& out, size_t slots) {
    return by_dim(in, out, in[0].shape, [&](int d) {
        Places places{At::in(0, d), At::in(1, d)};
        for (size_t s = 0; s < slots; ++s) places.push_back(At::in(3 + s, d));
        for (size_t o = 0; o < out.size(); ++o) places.push_back(At::out(o, d));
        return places;
    });
}

}  // namespace convoy::labelling
