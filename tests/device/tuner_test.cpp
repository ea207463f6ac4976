// The tuner's parts that run on the device: proofs that find what is wrong, final rounds that take it out, times that make sense.
#include <gtest/gtest.h>

#include <cmath>

#include "measure.hpp"
#include "params_fields.hpp"
#include "roofline.hpp"
#include "shape_class.hpp"
#include "sycl_mat/errors.hpp"
#include "tune_choice.hpp"
#include "tune_space.hpp"
#include "view.hpp"

namespace sycl_mat {
namespace {

Context::State& state() { return context().state(); }

const Kernel& general() { return find_kernel(state().info.is_cpu() ? "packed" : "tiled"); }

void expect_right(const Kernel& kernel, const TuneProblem& like) {
  const Problem p = make_problem(like);
  if (kernel.why_not && !kernel.why_not(p, state().info).empty()) return;
  SCOPED_TRACE(std::string(kernel.name) + " " + std::string(name_of(like.dtype)));
  EXPECT_EQ(prove(state(), kernel, kernel.defaults(p, state().info), like), "");
}

TEST(Prove, DefaultsAreRight) {
  for (const Kernel& kernel : all_kernels()) expect_right(kernel, {64, 64, 64});
  for (const DType dtype : {DType::float64, DType::bfloat16, DType::int8}) expect_right(general(), {64, 64, 64, 1, dtype});
  expect_right(general(), {64, 64, 64, 1, DType::float32, true, false});
  expect_right(general(), {64, 64, 64, 1, DType::float32, false, true});
}

TEST(Prove, StacksAreProvenAsStacks) {
  const TuneProblem like{16, 16, 16, 100, DType::float32, false, false};
  EXPECT_EQ(prove(state(), general(), general().defaults(make_problem(like), state().info), like), "");
}

TEST(TuneProblem, HasTheFormOfAProductsOperands) {
  for (const TuneProblem t : {TuneProblem{5, 1, 7}, {1, 5, 7}, {5, 7, 1}, {1, 1, 7}, {5, 1, 1}, {6, 5, 7}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const auto view = [](float* data, std::int64_t rows, std::int64_t cols, bool transposed) {
          return transposed ? row_major(data, cols, rows).transposed() : row_major(data, rows, cols);
        };
        float data[64];
        Operands o;
        o.a = view(data, t.m, t.k, ta), o.b = view(data, t.k, t.n, tb), o.d = row_major(data, t.m, t.n);
        const Problem product = make_problem(o, {});
        TuneProblem tuned = t;
        tuned.transpose_a = ta, tuned.transpose_b = tb;
        const Problem p = make_problem(tuned);
        SCOPED_TRACE(std::to_string(t.m) + "x" + std::to_string(t.n) + "x" + std::to_string(t.k) + (ta ? " t" : " n") + (tb ? "t" : "n"));
        // (A leading dimension that nothing walks along may be anything.)
        EXPECT_EQ(p.a.transposed, product.a.transposed);
        EXPECT_EQ(p.b.transposed, product.b.transposed);
        EXPECT_EQ(layout_of(p), layout_of(product));
        EXPECT_TRUE(t.n > 1 || layout_of(p)[1] == 'n');
      }
}

/// A kernel whose launch leaves half of the groups out, as a wrong split would.
Kernel half_done() {
  Kernel broken = find_kernel("tiled_local");
  broken.plan = [](const Kernel&, const Problem& p, const DeviceInfo& device, const Params& params) {
    const Kernel& right = find_kernel("tiled_local");
    Plan plan = right.plan(right, p, device, params);
    for (std::size_t& size : plan.range.global) size = size > 64 ? size / 2 / 16 * 16 : size;
    const std::size_t columns = plan.range.local[2];
    if (plan.range.global[2] > columns) plan.range.global[2] -= columns;
    return plan;
  };
  return broken;
}

TEST(Prove, FindsResultsThatWereLeftOut) {
  const Kernel broken = half_done();
  const TuneProblem like{64, 64, 64};
  const std::string wrong = prove(state(), broken, broken.defaults(make_problem(like), state().info), like);
  EXPECT_NE(wrong.find("wrong result for"), std::string::npos) << wrong;
}

TEST(FinalRounds, TakeOutWhatGivesAnotherResult) {
  const TuneProblem t{128, 128, 128};
  Workbench bench(state(), std::span(&t, 1));
  const Problem p = bench.problem(t);
  const Kernel broken = half_done();
  const Kernel& right = find_kernel("tiled_local");
  std::vector<Contender> contenders{{&right, right.defaults(p, state().info), 0, 1, 0, {}, {}},
                                    {&broken, broken.defaults(p, state().info), 0, 1, 0, {}, {}}};
  final_rounds(state(), p, contenders, 0.05);
  EXPECT_EQ(contenders[0].wrong, "");
  EXPECT_GT(contenders[0].least, 0);
  EXPECT_EQ(contenders[0].ratio, 1);
  EXPECT_NE(contenders[1].wrong, "");
}

TEST(FinalRounds, SeeWhoIsFaster) {
  const TuneProblem t{256, 256, 256};
  Workbench bench(state(), std::span(&t, 1));
  const Problem p = bench.problem(t);
  const Kernel &slow = find_kernel("naive"), &fast = general();
  std::vector<Contender> contenders{{&slow, slow.defaults(p, state().info), 0, 1, 0, {}, {}},
                                    {&fast, fast.defaults(p, state().info), 0, 1, 0, {}, {}}};
  final_rounds(state(), p, contenders, 0.2);
  ASSERT_EQ(contenders[1].wrong, "");
  EXPECT_LT(contenders[1].ratio, 1);
}

TEST(FinalRounds, TheHostPathAndOneMklTakeTheirTurns) {
  if (!state().info.is_cpu()) GTEST_SKIP() << "the host path is beside a processor's kernels only";
  const TuneProblem t{200, 100, 150};
  Workbench bench(state(), std::span(&t, 1));
  const Problem p = bench.problem(t);
  std::vector<Contender> contenders{contender_of("packed", general().defaults(p, state().info))};
  for (const std::string_view name : others_for(p, state().info)) contenders.push_back(contender_of(name, {}));
  ASSERT_GE(contenders.size(), 2u);
  final_rounds(state(), p, contenders, 0.05);
  for (const Contender& c : contenders) {
    EXPECT_EQ(c.wrong, "") << name_of(c);
    EXPECT_GT(c.least, 0) << name_of(c);
  }
}

/// Outcomes and contenders of three kernels with these times relative to the first.
std::vector<TuneOutcome> compared(double host, double onemkl, double noise) {
  std::vector<Contender> contenders{contender_of("packed", PackParams{}), contender_of("host", {}), contender_of("onemkl", {})};
  const double ratios[] = {1, host, onemkl};
  std::vector<TuneOutcome> outcomes;
  for (std::size_t i = 0; i < 3; ++i) {
    contenders[i].ratio = contenders[i].least = ratios[i];
    contenders[i].noise = noise;
    outcomes.push_back(outcome_of(contenders, name_of(contenders[i]), contenders[i].params, contenders[i].params, {64, 64, 64}, 1e9));
  }
  mark_fastest(outcomes, contenders, "packed");
  return outcomes;
}

TEST(Fastest, OnlyBeyondTheNoise) {
  const auto marked = [](double host, double onemkl, double noise) {
    std::string names;
    for (const TuneOutcome& o : compared(host, onemkl, noise)) names += o.fastest ? o.kernel + " " : "";
    return names;
  };
  EXPECT_EQ(marked(0.9, 1.2, 0.001), "host ");
  EXPECT_EQ(marked(0.995, 1.2, 0.001), "packed ");
  EXPECT_EQ(marked(0.9, 1.2, 0.1), "packed ");
  EXPECT_EQ(marked(1.1, 0.8, 0.001), "packed onemkl ");
  EXPECT_EQ(marked(0.9, 0.8, 0.001), "host onemkl ");
  EXPECT_EQ(marked(0.8, 0.9, 0.001), "host ");
  const TuneOutcome host = compared(0.9, 1, 0.001)[1];
  EXPECT_EQ(host.rule, "packed");
  EXPECT_NEAR(host.best_gflops / host.default_gflops, 1 / 0.9, 0.02) << "compared with what a product would run with otherwise";
  const TunedRecord record = make_record(host, make_problem({64, 64, 64}), state().info);
  EXPECT_EQ(record.instead_of, "packed");
  EXPECT_EQ(record.fastest, true);
}

TEST(Outcome, ARecordThatTheDefaultsAreAsFastAsIsDropped) {
  const Params defaults = PackParams{}, present = PackParams{.mr = 4};
  std::vector<Contender> contenders{contender_of("packed", present), contender_of("packed", defaults)};
  const auto best = [&](double ratio) {
    contenders[0].least = 1;
    contenders[1].ratio = contenders[1].least = ratio;
    contenders[1].noise = 0.01;
    return outcome_of(contenders, "packed", defaults, present, {64, 64, 64}, 1e9).best;
  };
  EXPECT_EQ(best(0.5), defaults);
  EXPECT_EQ(best(0.995), defaults) << "not beyond the noise, but no reason to keep the record";
  EXPECT_EQ(best(1.005), present);
}

TEST(TuneSpace, HoldsOnlySetsThatThePlannerTakes) {
  for (const char* name : {"tiled", "packed"}) {
    const Kernel& kernel = find_kernel(name);
    const Problem p = make_problem({256, 256, 256});
    if (!kernel.why_not(p, state().info).empty()) continue;
    const Params defaults = kernel.defaults(p, state().info);
    const TuneSpace space(kernel, std::span(&p, 1), state().info, std::span(&defaults, 1), {});
    EXPECT_TRUE(space.point(defaults).has_value()) << name << ": the defaults must be a point of the space";
    const auto points = space.space().points(300, 1);
    EXPECT_GT(points.size(), 100u);
    for (const PointId id : points) {
      const Params params = space.params(space.space().values(id));
      EXPECT_NO_THROW(kernel.plan(kernel, p, state().info, params)) << describe(params);
      const double guess = guess_seconds(params, p, state().info);
      EXPECT_TRUE(guess > 0 && std::isfinite(guess)) << describe(params);
    }
  }
}

TEST(TuneSpace, BlocksBeyondTheProblemAreOnePoint) {
  const Kernel& kernel = find_kernel("packed");
  const Problem p = make_problem({100, 100, 100});
  if (!kernel.why_not(p, state().info).empty()) GTEST_SKIP();
  const TuneSpace space(kernel, std::span(&p, 1), state().info, {}, {});
  for (const PointId id : space.space().points(100000, 1)) {
    const auto pack = std::get<PackParams>(space.params(space.space().values(id)));
    EXPECT_LE(pack.kc, 128);  // the first that holds all of K
    EXPECT_LT(pack.mc, 100);
  }
}

TEST(Tune, RefusesNonsense) {
  TuneOptions options;
  options.problems = {{0, 4, 4}};
  EXPECT_THROW(tune(context(), options), InputError);
  options.problems = {{64, 64, 64}};
  options.strategy = "luck";
  EXPECT_THROW(tune(context(), options), InputError);
}

TEST(Trial, ConstraintsAreNamed) { EXPECT_THROW(try_params(context(), {64, 64, 64}, TiledChoice{{16, 16, 9, 4, 4, 4}, {}}), ParamsError); }

TEST(Roofline, NothingIsFasterThanTheBound) {
  const Roofline roof = measure_roofline(state(), DType::float32);
  EXPECT_GT(roof.peak_gflops, 0);
  EXPECT_GT(roof.triad_gbs, 0);
  const TuneProblem t{512, 512, 512};
  Workbench bench(state(), std::span(&t, 1));
  const Problem p = bench.problem(t);
  const Kernel& kernel = general();
  Plan plan = kernel.plan(kernel, p, state().info, kernel.defaults(p, state().info));
  plan.kernel = &kernel;
  const double seconds = least_time(bench, plan, state().programs.get(kernel, plan.constants), p, 1e9);
  const Bound limit = bound(roof, state().info, shape_of(p), p.dtype);
  // Half: on a busy machine the ceiling may have been measured at a worse moment than the product.
  EXPECT_GT(seconds, 0.5 * limit.seconds);
}

}  // namespace
}  // namespace sycl_mat
