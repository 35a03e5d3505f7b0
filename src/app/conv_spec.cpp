#include "app/conv_spec.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace convoy {

namespace {

constexpr std::string_view kLetters = "ncdhwfksplg", kPerDim = "kspl";

using Numbers = std::map<char, std::vector<int64_t>>;

int64_t number_at(const std::string& word, size_t& at) {
    const size_t begin = at;
    while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
    require(at > begin && at - begin <= 9, "convolution \"{}\": expected a number at \"{}\"", word, word.substr(begin));
    return std::stoll(word.substr(begin, at - begin));
}

Numbers numbers_of(const std::string& word) {
    Numbers numbers;
    require(!word.empty(), "a convolution is a word such as n16c64h56w56f64k3s1p1, found nothing");
    for (size_t at = 0; at < word.size();) {
        const char letter = word[at++];
        require(kLetters.find(letter) != std::string_view::npos,
                "convolution \"{}\": expected one of the letters n c d h w f k s p l g, found \"{}\"", word, letter);
        require(!numbers.contains(letter), "convolution \"{}\": {} is given twice", word, letter);
        auto& list = numbers[letter];
        list.push_back(number_at(word, at));
        while (at < word.size() && word[at] == 'x' && kPerDim.find(letter) != std::string_view::npos) list.push_back(number_at(word, ++at));
    }
    return numbers;
}

// One number for each dim: as given, the same for all, or the default.
Dims per_dim(const std::string& word, const Numbers& numbers, char letter, int rank, int64_t otherwise) {
    const auto found = numbers.find(letter);
    if (found == numbers.end()) return Dims::filled(rank, otherwise);
    const auto& list = found->second;
    if (list.size() == 1) return Dims::filled(rank, list[0]);
    require(static_cast<int>(list.size()) == rank, "convolution \"{}\": {} has {} numbers, the input {} dims", word, letter, list.size(),
            rank);
    Dims dims;
    for (const int64_t n : list) dims.push_back(n);
    return dims;
}

void settle_shapes(ConvSpec& spec, int64_t n, int64_t c, int64_t f, const Dims& in) {
    spec.x = join({n, c}, in);
    spec.w = join({f, c / spec.groups}, spec.window.kernel);
    spec.y = join({n, f}, spec.window.output(in));
}

std::string numbers_text(const Dims& dims) {
    const bool same = std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return d == dims[0]; });
    return same ? std::to_string(dims[0]) : fmt::format("{}", fmt::join(dims.begin(), dims.end(), "x"));
}

}  // namespace

ConvSpec parse_conv(const std::string& word) {
    const Numbers numbers = numbers_of(word);
    const auto one = [&](char letter, int64_t otherwise) {
        const auto found = numbers.find(letter);
        require(found != numbers.end() || otherwise > 0, "convolution \"{}\": {} is missing", word, letter);
        const int64_t value = found == numbers.end() ? otherwise : found->second[0];
        require(value > 0, "convolution \"{}\": {} must be at least 1", word, letter);
        return value;
    };
    Dims in;
    for (const char letter : {'d', 'h', 'w'})
        if (letter == 'w' || numbers.contains(letter)) in.push_back(one(letter, 0));
    require(!numbers.contains('d') || numbers.contains('h'), "convolution \"{}\": d is given without h", word);
    const int rank = in.size();
    require(numbers.contains('k'), "convolution \"{}\": k is missing", word);
    ConvSpec spec;
    const Dims pad = per_dim(word, numbers, 'p', rank, 0);
    spec.window = {per_dim(word, numbers, 'k', rank, 1), per_dim(word, numbers, 's', rank, 1), per_dim(word, numbers, 'l', rank, 1), pad,
                   pad};
    for (const Dims* dims : {&spec.window.kernel, &spec.window.stride, &spec.window.dilation})
        for (const int64_t value : *dims) require(value > 0, "convolution \"{}\": k, s and l must be at least 1", word);
    spec.groups = one('g', 1);
    const int64_t c = one('c', 0), f = one('f', 0);
    require(c % spec.groups == 0 && f % spec.groups == 0, "convolution \"{}\": {} groups do not divide {} channels and {} filters", word,
            spec.groups, c, f);
    settle_shapes(spec, one('n', 1), c, f, in);
    require(numel(spec.y) > 0, "convolution \"{}\": the window is larger than the input", word);
    return spec;
}

std::vector<ConvSpec> read_convs(const std::string& path) {
    std::istringstream lines(read_file(path));
    std::vector<ConvSpec> list;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream words(line.substr(0, line.find('#')));
        for (std::string word; words >> word;) try {
                list.push_back(parse_conv(word));
            } catch (const Error& e) {
                fail("{}, line {}: {}", path, number, e.what());
            }
    }
    require(!list.empty(), "{} has no convolutions", path);
    return list;
}

std::vector<ConvSpec> convs_of(const Graph& graph) {
    std::vector<ConvSpec> list;
    for (const Node& node : graph.nodes()) {
        if (node.phase != Phase::Forward) continue;
        ConvSpec spec;
        const auto* conv = std::get_if<ConvOp>(&node.op);
        const auto* transposed = std::get_if<ConvGradInputOp>(&node.op);
        if (!conv && !transposed) continue;
        const Shape &in = graph.shape(node.inputs[0]), &out = graph.shape(node.outputs[0]);
        spec.window = conv ? conv->window : transposed->window;
        spec.groups = conv ? conv->groups : transposed->groups;
        spec.x = conv ? in : out;
        spec.y = conv ? out : in;
        spec.w = graph.shape(node.inputs[1]);
        const auto known = std::find_if(list.begin(), list.end(), [&](const ConvSpec& s) { return s.same_as(spec); });
        ConvSpec& entry = known == list.end() ? list.emplace_back(spec) : *known;
        entry.layers.push_back(node.layer);
    }
    return list;
}

bool ConvSpec::same_as(const ConvSpec& o) const { return window == o.window && groups == o.groups && x == o.x && w == o.w && y == o.y; }

Problem ConvSpec::problem(const std::string& direction, DType dtype) const {
    const auto whole = [&](const Shape& shape) { return TensorDesc::whole(shape, dtype); };
    if (direction == "forward") return Problem::single(ConvOp{window, groups}, {whole(x), whole(w)}, {whole(y)}, dtype);
    if (direction == "input") return Problem::single(ConvGradInputOp{window, groups, x.slice(2)}, {whole(y), whole(w)}, {whole(x)}, dtype);
    return Problem::single(ConvGradWeightOp{window, groups}, {whole(x), whole(y)}, {whole(w)}, dtype);
}

double ConvSpec::operations() const {
    return 2.0 * static_cast<double>(numel(y)) * static_cast<double>(numel(w)) / static_cast<double>(w[0]);
}

std::string ConvSpec::text() const {
    std::string word = fmt::format("n{}c{}", x[0], x[1]);
    const int rank = x.size() - 2;
    for (int i = 0; i < rank; ++i) word += fmt::format("{}{}", "dhw"[3 - rank + i], x[i + 2]);
    word += fmt::format("f{}k{}s{}p{}", y[1], numbers_text(window.kernel), numbers_text(window.stride), numbers_text(window.pad_lo));
    const Dims ones = Dims::filled(rank, 1);
    if (window.dilation != ones) word += "l" + numbers_text(window.dilation);
    if (groups != 1) word += fmt::format("g{}", groups);
    return word;
}

}  // namespace convoy
