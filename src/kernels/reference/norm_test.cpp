// The numbers of batch, group, layer and local response norm are PyTorch's, from the same sequences in double.
#include "kernels/reference/norm.h"

#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

class BatchNorm : public ::testing::Test {
  protected:
    Shape shape{2, 3, 4}, channels{3}, cells{2, 3};
    Tensor x = sequence(shape), dy = gradient_sequence(shape);
    Tensor gamma = doubles({3}, {1.5, -0.5, 0.75}), beta = doubles({3}, {0.1, 0.2, -0.3});
    Tensor running_mean = doubles({3}, {0.5, 0.0, -0.25}), running_variance = doubles({3}, {1.0, 2.0, 0.5});
};

// The known answers stand in rows.
// clang-format off
TEST_F(BatchNorm, Training) {
    const auto stats = run<double>(BatchStatsOp{}, {x}, {cells})[0];
    expect_near(run<double>(BatchNormalizeOp{}, {x, stats, gamma, beta}, {shape})[0],
                {-2.507935788646, 0.6669425627491, -1.147273638048, 2.027604713347, 0.005449896328563, 0.6971835982715,
                 -0.5133503801286, 0.1783833218143, -1.002776443436, 0.6370352579143, -0.3, -1.237035257914,
                 0.6669425627491, -1.147273638048, 2.027604713347, 0.2133885125498, 0.6971835982715, -0.5133503801286,
                 0.1783833218143, 0.8701170237572, 0.6370352579143, -0.3, -1.237035257914, 0.4027764434357});
    const auto sums = run<double>(BatchNormGradSumsOp{}, {x, dy, stats}, {channels, channels});
    expect_near(sums[0], {0.7937195878488, 0.005404169546429, 2.108329330307});
    expect_near(sums[1], {-1, 1.125, 0});
    expect_near(run<double>(BatchNormGradInputOp{.count = 8}, {x, dy, stats, gamma, sums[0], sums[1]}, {shape})[0],
                {-0.8209374088388, -0.06803211231728, 1.283555772596, -0.9116402571777, 0.0109901581396, -0.4219898732965,
                 0.2708751471595, -0.1621048842766, -0.354248648601, -0.3085311834606, 0.5856470361964, -0.04285703825724,
                 0.6122989629817, -0.9842144784002, -0.2313091818788, 1.120278703035, 0.4426772541321, 0.01147500893092,
                 -0.4215050225051, 0.269582211716, 0.04285703825724, -0.5856470361964, 0.3085311834606, 0.354248648601});
    const auto running =
        run<double>(RunningUpdateOp{.momentum = 0.1, .count = 8}, {running_mean, running_variance, stats}, {channels, channels});
    expect_near(running[0], {0.46875, -0.003125, -0.25});
    expect_near(running[1], {0.978125, 1.859709821429, 0.5232142857143});
}

TEST_F(BatchNorm, Inference) {
    const auto stats = run<double>(RunningStatsOp{}, {running_mean, running_variance}, {cells})[0];
    expect_near(run<double>(BatchNormalizeOp{}, {x, stats, gamma, beta}, {shape})[0],
                {-2.524986875098, 0.1, -1.399992500056, 1.224994375042, 0.1116118733217, 0.4651643800348,
                 -0.1535525067131, 0.2, -1.095487174003, 0.7606495653372, -0.3, -1.360649565337,
                 0.1, -1.399992500056, 1.224994375042, -0.2749981250141, 0.4651643800348, -0.1535525067131,
                 0.2, 0.5535525067131, 0.7606495653372, -0.3, -1.360649565337, 0.4954871740029});
    expect_near(run<double>(BatchNormFixedGradInputOp{}, {dy, stats, gamma}, {shape})[0],
                {-1.124994375042, -0.187499062507, 0.7499962500281, -0.7499962500281, -0.04419406333914, -0.2651643800348,
                 0.08838812667828, -0.1325821900174, -0.6629059783358, 0, 0.6629059783358, -0.3977435870014,
                 0.3749981250141, -1.124994375042, -0.187499062507, 0.7499962500281, 0.1767762533566, -0.04419406333914,
                 -0.2651643800348, 0.08838812667828, 0.3977435870014, -0.6629059783358, 0, 0.6629059783358});
    const auto sums = run<double>(BatchNormGradSumsOp{}, {x, dy, stats}, {channels, channels});
    expect_near(sums[0], {0.9687451562863, -0.02209703166957, 2.386461522009});
    expect_near(sums[1], {-1, 1.125, 0});
}
// clang-format on

TEST_F(BatchNorm, OneElementLeavesTheVarianceUnscaled) {
    const auto stats = doubles({2, 1}, {3, 0.5});
    const auto running =
        run<double>(RunningUpdateOp{.momentum = 0.5, .count = 1}, {doubles({1}, {1}), doubles({1}, {1}), stats}, {{1}, {1}});
    expect_near(running[0], {2});
    expect_near(running[1], {0.75});
}

TEST_F(BatchNorm, InPlace) {
    const auto stats = run<double>(BatchStatsOp{}, {x}, {cells})[0];
    const auto apart = run<double>(BatchNormalizeOp{}, {x, stats, gamma, beta}, {shape})[0];
    Tensor y = x, s = stats;
    run_into<double>(BatchNormalizeOp{}, {&y, &s, &gamma, &beta}, {&y});
    EXPECT_EQ(y, apart);
    const RunningUpdateOp update{.momentum = 0.2, .count = 8};
    const auto running = run<double>(update, {running_mean, running_variance, stats}, {channels, channels});
    run_into<double>(update, {&running_mean, &running_variance, &s}, {&running_mean, &running_variance});
    EXPECT_EQ(running_mean, running[0]);
    EXPECT_EQ(running_variance, running[1]);
}

// A mean far from zero is where one-pass formulas in float lose the variance.
TEST_F(BatchNorm, LargeMeanInFloat) {
    Tensor far = normal({4, 2, 100}, "far");
    for (auto& value : far.as<double>()) value = 1000 + 0.01 * value;
    const Tensor narrow = far.to(DType::f32);
    const auto expected = run<double>(BatchStatsOp{}, {narrow.to(DType::f64)}, {{2, 2}})[0];
    EXPECT_LT(relative_error(run<float>(BatchStatsOp{}, {narrow}, {{2, 2}})[0].to(DType::f64), expected), 1e-6);
    EXPECT_NEAR(element(expected, 2), 1e-4, 3e-5);
}

class CellNorm : public ::testing::Test {
  protected:
    Shape shape{2, 4, 3};
    Tensor x = sequence(shape), dy = gradient_sequence(shape);

    struct Expected {
        std::vector<double> y, dx, dgamma, dbeta;
    };
    void check(const Cells& cells, int64_t count, const Tensor& gamma, const Tensor& beta, const Expected& expected) {
        const auto stats = run<double>(CellStatsOp{cells}, {x}, {{2, count}})[0];
        expect_near(run<double>(CellNormalizeOp{cells}, {x, stats, gamma, beta}, {shape})[0], expected.y);
        const auto affine = run<double>(CellNormGradAffineOp{cells}, {x, dy, stats}, {gamma.shape(), gamma.shape()});
        expect_near(affine[0], expected.dgamma);
        expect_near(affine[1], expected.dbeta);
        const auto sums = run<double>(CellNormGradSumsOp{cells}, {x, dy, stats, gamma}, {{2, count}})[0];
        expect_near(run<double>(CellNormGradInputOp{cells}, {x, dy, stats, gamma, sums}, {shape})[0], expected.dx);
    }
};

// clang-format off
TEST_F(CellNorm, Group) {
    check({.groups = 2}, 4, doubles({4}, {1.5, -0.5, 0.75, 1.0}), doubles({4}, {0.1, 0.2, -0.3, 0.0}),
          {.y = {-1.989563203598, 1.144781601799, -0.6462725727136, -0.5960240775611, 0.0009939806097175, 0.5980120387806,
                 0.7214698908648, -0.1865033454595, -1.094476581784, 1.059302109045, -0.1513288727207, -1.361959854486,
                 0.5294446956702, -1.531889843547, 2.075445600083, 0.228629646378, 0.9157411594503, -0.2867039884262,
                 -0.0852776521649, -1.115944921773, 0.6877228000415, -0.05725929275603, -1.431482318901, 0.9734079768525},
           .dx = {-0.7130296625362, -0.3151304841741, 1.216569621015, -0.1019581178639, -0.06280315810165, -0.0236481983394,
                  -0.394106853384, 0.3443408842873, -0.3926678870683, -0.1243724280608, 0.8032364005114, -0.2364301162856,
                  0.6997844936566, -1.147535747136, -0.2337266823683, -0.1056013230777, 0.7955244884193, -0.008445229494045,
                  0.5322315279732, -0.06421199404213, -0.1799365088248, -0.9911023786753, 0.3020107602583, 0.4010085933107},
           .dgamma = {1.431857515123, -0.5345031207055, 1.358887570249, 1.060321443487},
           .dbeta = {-1, 0.5, 0.375, 0.25}});
}

TEST_F(CellNorm, LayerOverTwoDims) {
    check({.groups = 0, .axis = 1}, 2, sequence({4, 3}, {3, 7, 3, 2}), sequence({4, 3}, {2, 5, 2, 4}),
          {.y = {1.565715309353, 0, -0.2136107432312, -1.063766637018, 0.675662548594, 0.2762081768479,
                 0.6635327963378, 0.3122076991497, -0.25, 1.789896866973, -0.4123635929365, -1.377143539569,
                 -1.39351754938, 0, 2.855637175638, -0.3853814468757, -0.7788989962556, -1.745509311257,
                 -0.02707628937515, 2.530721703136, -0.25, -0.3186020768781, 0.3393649706296, 0.5956783662533},
           .dx = {1.266627745131, 0.0259489258904, 0.8636801146112, 0.3741704987714, 0.1602648027305, -0.955043937392,
                  -0.09244898710951, -0.6819392848511, -0.06955885715064, 0.04186688973057, -0.3973895673307, -0.5361783430316,
                  -0.3773212233796, 0.1062407245604, -0.1307761733937, -0.2158163023319, -0.5445430356464, -0.05050012047142,
                  0.5955195637194, 0.5917083029067, 0.1110048005763, -1.111239482118, 0.1033822789508, 0.9223406666276},
           .dgamma = {1.18177724624, 0.4372213640711, -0.4341733457136, -0.6783851901423, 0.5676573167021, -0.4264674687289,
                      -0.3723808322316, 0.3854016924019, 1.018145100913, 0.2369175320325, -0.1095455088293, 0.8887278062466},
           .dbeta = {-0.5, -0.875, 0.375, 0, -0.375, 0.875,
                     0.5, 0.125, -0.25, -0.625, 0.625, 0.25}});
}

TEST_F(CellNorm, LayerOverTheLastDim) {
    check({.groups = 0, .axis = 2}, 8, doubles({3}, {1.5, -0.5, 0.75}), doubles({3}, {0.1, 0.2, -0.3}),
          {.y = {-1.643697615533, -0.4393557923622, -0.3871848807767, 1.937103528863, 0.2, -1.218551764431,
                 1.937103528863, 0.2, -1.218551764431, 1.937103528863, 0.2, -1.218551764431,
                 0.2743697615533, 0.8393557923622, 0.5718488077666, 0.2743697615533, 0.8393557923622, 0.5718488077666,
                 0.2743697615533, 0.8393557923622, 0.5718488077666, 0.2743697615533, 0.8393557923622, 0.5718488077666},
           .dx = {-0.5231234224736, -0.3923164119, 0.9154398343736, -0.01276971920595, 0.02551532678976, -0.01274560758381,
                  -0.09568161433223, 0.1913649509232, -0.09568333659096, 0.07016973205992, -0.1403342973437, 0.07016456528375,
                  0.2474159804008, -0.1060293611088, -0.141386619292, 0.5443162879068, -0.2332770357153, -0.3110392521915,
                  0.8412165954129, -0.3605247103219, -0.480691885091, -1.113374032476, 0.477155452382, 0.6362185800936},
           .dgamma = {0.0550127375748, 1.758228428996, 1.410525744648},
           .dbeta = {-0.625, -0.5, 1.25}});
}

TEST(Lrn, OddWindow) {
    const Tensor x = sequence({1, 5, 3}), dy = gradient_sequence({1, 5, 3});
    expect_near(run<double>(LrnOp{3, 0.5, 0.75, 2}, {x}, {x.shape()})[0],
                {-0.6248156706518, 0.291624333675, -0.2830466592334, 0.595523163263, 0.1458121668375,
                 -0.4013012226506, 0.4998525365214, 0, -0.4998525365214, 0.4013012226506,
                 -0.1458121668375, -0.595523163263, 0.2830466592334, -0.291624333675, 0.6248156706518});
    expect_near(run<double>(LrnGradOp{3, 0.5, 0.75, 2}, {x, dy}, {x.shape()})[0],
                {-0.3514204760427, -0.07179583849358, 0.2584197830402, -0.2461868940341, 0.07346120588132,
                 0.38759785479, -0.0848713442551, 0.2212500589379, -0.2933363437079, 0.003081559222654,
                 0.3684162743318, -0.123643186149, 0.137381183384, -0.4296647860363, -0.07876708584646});
}

TEST(Lrn, EvenWindow) {
    const Tensor x = sequence({1, 5, 3}), dy = gradient_sequence({1, 5, 3});
    expect_near(run<double>(LrnOp{4, 0.5, 0.75, 2}, {x}, {x.shape()})[0],
                {-0.6501692423026, 0.293019890058, -0.2864595277163, 0.6257856304471, 0.146509945029,
                 -0.4114670809676, 0.4903842146542, 0, -0.5150936628878, 0.3863202471658,
                 -0.1460903459177, -0.6129802683178, 0.2743113873117, -0.293019890058, 0.6257856304471});
    expect_near(run<double>(LrnGradOp{4, 0.5, 0.75, 2}, {x, dy}, {x.shape()})[0],
                {-0.3825579127748, -0.07241296133616, 0.2795383420346, -0.2578578847856, 0.07576696587919,
                 0.4135856553488, -0.09616068677672, 0.2191355188765, -0.3121602106781, 0.002335622450768,
                 0.3681869440886, -0.1391931764776, 0.1342682053684, -0.4336076764981, -0.07612460842});
}
// clang-format on

TEST(Norm, TypesAndThreadsAgree) {
    for (const Shape& shape : {Shape{3, 4, 5, 7}, Shape{1, 8, 3}, Shape{5, 6, 2, 3, 4}, Shape{4, 2, 1, 1}}) {
        SCOPED_TRACE(to_string(shape));
        const int64_t c = shape[1], count = numel(shape) / c;
        const Tensor x = normal(shape, "x"), dy = normal(shape, "dy"), gamma = normal({c}, "gamma"), beta = normal({c}, "beta");
        const auto stats = run<double>(BatchStatsOp{}, {x}, {{2, c}})[0];
        expect_types_and_threads_agree(BatchStatsOp{}, {x}, {{2, c}});
        expect_types_and_threads_agree(BatchNormalizeOp{}, {x, stats, gamma, beta}, {shape});
        expect_types_and_threads_agree(BatchNormGradSumsOp{}, {x, dy, stats}, {{c}, {c}});
        const auto sums = run<double>(BatchNormGradSumsOp{}, {x, dy, stats}, {{c}, {c}});
        expect_types_and_threads_agree(BatchNormGradInputOp{.count = count}, {x, dy, stats, gamma, sums[0], sums[1]}, {shape});
        expect_types_and_threads_agree(BatchNormFixedGradInputOp{}, {dy, stats, gamma}, {shape});
        expect_types_and_threads_agree(LrnOp{5, 0.3, 0.75, 1}, {x}, {shape});
        expect_types_and_threads_agree(LrnGradOp{5, 0.3, 0.75, 1}, {x, dy}, {shape});

        const Cells cells{.groups = 2};
        const int64_t number = 2 * shape[0];
        const auto cell_stats = run<double>(CellStatsOp{cells}, {x}, {{2, number}})[0];
        expect_types_and_threads_agree(CellStatsOp{cells}, {x}, {{2, number}});
        if (numel(shape) / number < 2) continue;  // a cell of one element has a variance of 0, and 1/sqrt(epsilon) blows up the rounding
        expect_types_and_threads_agree(CellNormalizeOp{cells}, {x, cell_stats, gamma, beta}, {shape});
        expect_types_and_threads_agree(CellNormGradAffineOp{cells}, {x, dy, cell_stats}, {{c}, {c}});
        const auto cell_sums = run<double>(CellNormGradSumsOp{cells}, {x, dy, cell_stats, gamma}, {{2, number}})[0];
        expect_types_and_threads_agree(CellNormGradSumsOp{cells}, {x, dy, cell_stats, gamma}, {{2, number}});
        expect_types_and_threads_agree(CellNormGradInputOp{cells}, {x, dy, cell_stats, gamma, cell_sums}, {shape});
    }
}

}  // namespace
}  // namespace convoy::ref
