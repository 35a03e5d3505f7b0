// A small ray tracer: the ground is a plane; everything that stands on it is given by its distance function and found by marching along the ray.
#include "data/make/shapes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace convoy {

namespace {

struct Vec {
    double x = 0, y = 0, z = 0;  // y is up
    Vec operator+(const Vec& o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec operator-(const Vec& o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec operator*(double f) const { return {x * f, y * f, z * f}; }
    Vec operator*(const Vec& o) const { return {x * o.x, y * o.y, z * o.z}; }
};
double dot(const Vec& a, const Vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
double length(const Vec& a) { return std::sqrt(dot(a, a)); }
Vec unit(const Vec& a) { return a * (1 / length(a)); }
Vec cross(const Vec& a, const Vec& b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
Vec mix(const Vec& a, const Vec& b, double t) { return a * (1 - t) + b * t; }

struct Draw {
    RandomStream random;
    uint64_t next = 0;
    double operator()() { return random.uniform(next++); }
    double between(double low, double high) { return low + (high - low) * (*this)(); }
    int below(int count) { return static_cast<int>((*this)() * count); }
    // Neither black nor white.
    Vec colour() {
        const double hue = between(0, 6), saturation = between(0.2, 0.9), value = between(0.35, 0.95);
        const auto part = [&](double shift) {
            const double k = std::fmod(hue + shift, 6.0);
            return value * (1 - saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0));
        };
        return {part(5), part(3), part(1)};
    }
};

// Smooth noise in 0..1 over space, of unit scale.
double noise(uint64_t seed, const Vec& p) {
    const auto at = [&](int64_t x, int64_t y, int64_t z) {
        uint64_t h = seed ^ static_cast<uint64_t>(x) * 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(y) * 0xC2B2AE3D27D4EB4Fu ^
                     static_cast<uint64_t>(z) * 0x165667B19E3779F9u;
        h = (h ^ (h >> 31)) * 0xBF58476D1CE4E5B9u;
        h = (h ^ (h >> 29)) * 0x94D049BB133111EBu;
        return static_cast<double>(h >> 40) * 0x1p-24;
    };
    const double fx = std::floor(p.x), fy = std::floor(p.y), fz = std::floor(p.z);
    const auto ease = [](double t) { return t * t * (3 - 2 * t); };
    const double tx = ease(p.x - fx), ty = ease(p.y - fy), tz = ease(p.z - fz);
    const auto ix = static_cast<int64_t>(fx), iy = static_cast<int64_t>(fy), iz = static_cast<int64_t>(fz);
    double sum = 0;
    for (int c = 0; c < 8; ++c) {
        const int dx = c & 1, dy = c >> 1 & 1, dz = c >> 2;
        sum += (dx ? tx : 1 - tx) * (dy ? ty : 1 - ty) * (dz ? tz : 1 - tz) * at(ix + dx, iy + dy, iz + dz);
    }
    return sum;
}
double clouds(uint64_t seed, Vec p) {
    double sum = 0, weight = 0.5;
    for (int octave = 0; octave < 4; ++octave, weight /= 2, p = p * 2.03) sum += weight * noise(seed + static_cast<uint64_t>(octave), p);
    return sum;
}

struct Stone {
    Vec centre;
    double radius;
    Vec colour;
};

// Everything in a picture.
struct Scene {
    size_t kind;
    Vec place;           // where it stands
    double size, turn;   // half its width; about the vertical
    Vec shape;           // proportions
    Vec colour, second;  // of the thing; its pattern's
    int pattern;         // none, stripes, spots, marble
    double pattern_scale;
    Vec ground, ground_second, sky, horizon;
    double ground_scale;
    bool tiles;
    Vec sun, sunlight;
    std::vector<Stone> stones;
    Vec eye, right, up, forward;
    double zoom, grain;
    uint64_t seed;

    Vec to_thing(const Vec& p) const {
        const Vec d = p - place;
        const double c = std::cos(turn), s = std::sin(turn);
        return {c * d.x - s * d.z, d.y, s * d.x + c * d.z};
    }
    double thing(const Vec& p) const {
        const Vec q = to_thing(p);
        if (kind == 0) return length(q - Vec{0, size, 0}) - size;
        if (kind == 1) {
            const Vec half = shape * size, d{std::abs(q.x) - half.x, std::abs(q.y - half.y) - half.y, std::abs(q.z) - half.z};
            const double rounding = 0.04 * size;
            const Vec outside{std::max(d.x + rounding, 0.0), std::max(d.y + rounding, 0.0), std::max(d.z + rounding, 0.0)};
            return length(outside) - rounding + std::min(std::max({d.x, d.y, d.z}), 0.0);
        }
        const double height = 2 * size * shape.y, slope = std::atan2(size, height);
        const double side = std::cos(slope) * std::hypot(q.x, q.z) + std::sin(slope) * (q.y - height);
        return std::max(side, -q.y);
    }
    double stone(const Stone& s, const Vec& p) const {
        return 0.7 * (length(p - s.centre) - s.radius * (0.7 + 0.6 * noise(seed + 77, p * (1.5 / s.radius))));
    }
    double distance(const Vec& p) const {
        double least = thing(p);
        for (const Stone& s : stones)
            if (length(p - s.centre) - 1.4 * s.radius < least) least = std::min(least, stone(s, p));
        return least;
    }
};

Scene draw_scene(Draw& draw, size_t kind, uint64_t seed) {
    Scene s{};
    s.kind = kind;
    s.seed = seed;
    s.size = draw.between(0.5, 1);
    s.place = {draw.between(-0.7, 0.7), 0, draw.between(-0.7, 0.7)};
    s.turn = draw.between(0, 6.28);
    s.shape = {draw.between(0.7, 1.1), kind == 2 ? draw.between(0.75, 1.3) : draw.between(0.6, 1.2), draw.between(0.7, 1.1)};
    s.colour = draw.colour();
    s.second = draw.colour();
    s.pattern = draw.below(4);
    s.pattern_scale = draw.between(2, 5);
    s.ground = draw.colour() * 0.8;
    s.ground_second = mix(s.ground, draw.colour(), 0.4);
    s.ground_scale = draw.between(0.8, 4);
    s.tiles = draw() < 0.3;
    s.sky = mix({0.35, 0.55, 0.9}, draw.colour(), draw.between(0, 0.5));
    s.horizon = mix({0.85, 0.88, 0.92}, draw.colour(), draw.between(0, 0.4));
    const double sun_turn = draw.between(0, 6.28), sun_height = draw.between(0.4, 1.2);
    s.sun = unit({std::cos(sun_turn), std::tan(sun_height), std::sin(sun_turn)});
    s.sunlight = Vec{1.0, 0.95, 0.85} * draw.between(0.7, 1.1);
    for (int i = draw.below(6); i > 0; --i) {
        const double turn = draw.between(0, 6.28), far = draw.between(1.6, 3.5), radius = draw.between(0.08, 0.3);
        s.stones.push_back({s.place + Vec{far * std::cos(turn), 0.3 * radius, far * std::sin(turn)}, radius, draw.colour() * 0.7});
    }
    const double turn = draw.between(0, 6.28), height = draw.between(0.15, 0.75), far = draw.between(4, 6.5);
    s.eye = {far * std::cos(turn) * std::cos(height), far * std::sin(height) + 0.3, far * std::sin(turn) * std::cos(height)};
    const Vec at{draw.between(-0.4, 0.4), draw.between(0.3, 0.8), draw.between(-0.4, 0.4)};
    s.forward = unit(at - s.eye);
    s.right = unit(cross(s.forward, {draw.between(-0.06, 0.06), 1, 0}));
    s.up = cross(s.right, s.forward);
    s.zoom = draw.between(1.6, 2.4);
    s.grain = draw.between(0.005, 0.025);
    return s;
}

// How far a ray goes before it meets something that stands on the ground; negative: it meets nothing.
double march(const Scene& s, const Vec& from, const Vec& way, double far) {
    double t = 1e-3;
    for (int i = 0; i < 90 && t < far; ++i) {
        const double d = s.distance(from + way * t);
        if (d < 1e-3) return t;
        t += d;
    }
    return -1;
}

// The share of the sun that reaches a point: less at the edge of a shadow.
double sunlit(const Scene& s, const Vec& p) {
    double share = 1, t = 0.02;
    for (int i = 0; i < 40 && t < 8; ++i) {
        const double d = s.distance(p + s.sun * t);
        if (d < 1e-3) return 0;
        share = std::min(share, 12 * d / t);
        t += std::max(d, 0.01);
    }
    return share;
}

Vec sky_at(const Scene& s, const Vec& way) {
    const double height = std::max(way.y, 0.0);
    const Vec base = mix(s.horizon, s.sky, std::pow(height, 0.5));
    const double cloud = std::clamp(2.5 * clouds(s.seed + 5, way * (3 / (height + 0.25))) - 1.1, 0.0, 1.0);
    return mix(base, {0.95, 0.95, 0.95}, cloud * 0.7);
}

Vec thing_colour(const Scene& s, const Vec& p) {
    const Vec q = s.to_thing(p) * (s.pattern_scale / s.size);
    double share = 0;
    if (s.pattern == 1) share = std::sin(2 * q.y + q.x) > 0 ? 1 : 0;
    if (s.pattern == 2) share = noise(s.seed + 9, q * 1.5) > 0.62 ? 1 : 0;
    if (s.pattern == 3) share = 0.5 + 0.5 * std::sin(6 * clouds(s.seed + 11, q * 0.7) * 3.14);
    return mix(s.colour, s.second, share) * (0.85 + 0.3 * noise(s.seed + 13, q * 6));
}

Vec ground_colour(const Scene& s, const Vec& p) {
    double share = clouds(s.seed + 3, p * s.ground_scale);
    if (s.tiles) share = 0.7 * std::fmod(std::floor(p.x * 0.8) + std::floor(p.z * 0.8) + 1000, 2.0) + 0.3 * share;
    return mix(s.ground, s.ground_second, share) * (0.8 + 0.4 * noise(s.seed + 21, p * 14));
}

Vec lit(const Scene& s, const Vec& p, const Vec& normal, const Vec& colour, const Vec& way, double gloss) {
    const double sun = std::max(dot(normal, s.sun), 0.0) * sunlit(s, p + normal * 0.01);
    const double open = std::clamp(s.distance(p + normal * 0.25) / 0.25, 0.25, 1.0);  // less light from the sky where something is near
    const Vec half = unit(s.sun - way);
    const double shine = gloss * sun * std::pow(std::max(dot(normal, half), 0.0), 40);
    const Vec ambient = mix(s.horizon, s.sky, 0.5 + 0.5 * normal.y) * (0.35 * open);
    return colour * (ambient + s.sunlight * (0.85 * sun)) + s.sunlight * shine;
}

Vec trace(const Scene& s, const Vec& way) {
    const double ground = way.y < -1e-4 ? -s.eye.y / way.y : 1e9;
    const double hit = march(s, s.eye, way, std::min(ground, 14.0));
    if (hit > 0) {
        const Vec p = s.eye + way * hit;
        constexpr double kStep = 2e-3;
        const double d = s.distance(p);
        const Vec normal =
            unit({s.distance(p + Vec{kStep, 0, 0}) - d, s.distance(p + Vec{0, kStep, 0}) - d, s.distance(p + Vec{0, 0, kStep}) - d});
        if (s.thing(p) <= d + 1e-6) return lit(s, p, normal, thing_colour(s, p), way, 0.5);
        for (const Stone& stone : s.stones)
            if (s.stone(stone, p) <= d + 1e-6) return lit(s, p, normal, stone.colour * (0.6 + 0.8 * clouds(s.seed + 31, p * 9)), way, 0.05);
    }
    if (ground < 60) {
        const Vec p = s.eye + way * ground;
        return mix(lit(s, p, {0, 1, 0}, ground_colour(s, p), way, 0), sky_at(s, {way.x, 0, way.z}), 1 - std::exp(-ground / 40));
    }
    return sky_at(s, way);
}

}  // namespace

void require_valid(const ShapeOptions& options) {
    require(options.size >= 16 && options.size <= 2048, "pictures of {} pixels: expected 16 to 2048", options.size);
}

Pixels make_shape(const ShapeOptions& options, size_t shape_class, uint64_t index) {
    require_valid(options);
    CONVOY_CHECK(shape_class < kShapeClasses.size(), "class {} of {}", shape_class, kShapeClasses.size());
    const auto step = static_cast<uint32_t>(index);
    Draw draw{{options.seed, step, stream_of(kShapeClasses[shape_class])}};
    const auto longer = static_cast<int64_t>(static_cast<double>(options.size) * draw.between(1, 1.5));
    Pixels pixels;
    pixels.resize(draw() < 0.7 ? ImageSize{longer, options.size} : ImageSize{options.size, longer});
    const Scene scene = draw_scene(draw, shape_class, draw.random.bits(1000));
    const RandomStream grain{options.seed, step, stream_of("shapes grain") ^ draw.random.stream};

    const auto [width, height] = pixels.size;
    const auto unit_size = static_cast<double>(options.size);
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) {
            Vec sum;
            constexpr std::array<std::array<double, 2>, 4> kSamples{{{0.375, 0.125}, {0.875, 0.375}, {0.125, 0.625}, {0.625, 0.875}}};
            for (const auto& [dx, dy] : kSamples) {
                const double u = (static_cast<double>(x) + dx - static_cast<double>(width) / 2) / unit_size;
                const double v = (static_cast<double>(height) / 2 - static_cast<double>(y) - dy) / unit_size;
                sum = sum + trace(scene, unit(scene.forward * scene.zoom + scene.right * u + scene.up * v));
            }
            const double u = static_cast<double>(2 * x - width) / static_cast<double>(width),
                         v = static_cast<double>(2 * y - height) / static_cast<double>(height);
            const Vec light = sum * (0.25 * (1 - 0.12 * (u * u + v * v)));  // lenses are darker towards the corners
            uint8_t* const out = pixels.row(y) + 3 * x;
            const auto at = static_cast<uint64_t>(3 * (y * width + x));
            const std::array<double, 3> rgb{light.x, light.y, light.z};
            for (size_t c = 0; c < 3; ++c) {
                const double value = std::pow(std::clamp(rgb[c], 0.0, 1.0), 1 / 1.6) + scene.grain * grain.normal(at + c);
                out[c] = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
            }
        }
    return pixels;
}

}  // namespace convoy
