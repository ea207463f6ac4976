// The tuner, the tuning database and the roofline for Python: plain tuples, lists and dictionaries, which sycl_mat/tuning.py makes nice.
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <fstream>

#include "bindings.hpp"
#include "kernel_version.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "params_fields.hpp"
#include "plan.hpp"
#include "roofline.hpp"
#include "search.hpp"
#include "sweep.hpp"
#include "sycl_mat/tuner.hpp"
#include "tuning_db.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {
namespace {

DType dtype_named(const std::string& name) {
  for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int8})
    if (name_of(type) == name) return type;
  throw nb::value_error(("dtype: float32, float64, float16, bfloat16 or int8 is wanted, not '" + name + "'").c_str());
}

/// (m, n, k, batch, dtype, transpose_a, transpose_b)
TuneProblem problem_from(nb::handle value) {
  const auto t = nb::cast<nb::tuple>(value);
  return {nb::cast<std::int64_t>(t[0]),
          nb::cast<std::int64_t>(t[1]),
          nb::cast<std::int64_t>(t[2]),
          nb::cast<std::int64_t>(t[3]),
          dtype_named(nb::cast<std::string>(t[4])),
          nb::cast<bool>(t[5]),
          nb::cast<bool>(t[6])};
}

nb::tuple to_python(const TuneProblem& p) {
  return nb::make_tuple(p.m, p.n, p.k, p.batch, std::string(name_of(p.dtype)), p.transpose_a, p.transpose_b);
}

/// What `params=` takes: None, PackParams, or (TileParams, TileOptions).
nb::object to_python(const Params& params) {
  if (const auto* pack = std::get_if<PackParams>(&params)) return nb::cast(*pack);
  if (const auto* tiled = std::get_if<TiledChoice>(&params)) return nb::make_tuple(tiled->params, tiled->options);
  return nb::none();
}

nb::object number_or_none(double value) { return std::isfinite(value) ? nb::cast(value) : nb::none(); }

nb::dict to_python(const Candidate& c) {
  nb::dict d;
  nb::dict constants;
  for (const ParamField& field : fields_of(c.params)) constants[field.name] = field.get(c.params);
  nb::list seconds;
  for (const double s : c.seconds) seconds.append(number_or_none(s));
  d["params"] = to_python(c.params);
  d["constants"] = constants;
  d["state"] = to_string(c.state);
  d["why"] = c.why;
  d["seconds"] = seconds;
  d["found_at"] = c.found_at;
  d["build_seconds"] = c.build_seconds;
  d["registers"] = c.registers;
  d["spills"] = c.spills;
  return d;
}

nb::dict to_python(const TuneOutcome& o) {
  nb::dict d;
  d["problem"] = to_python(o.problem);
  d["kernel"] = o.kernel;
  d["defaults"] = to_python(o.defaults);
  d["present"] = to_python(o.present);
  d["best"] = to_python(o.best);
  d["best_text"] = describe(o.best);
  d["default_gflops"] = o.default_gflops;
  d["present_gflops"] = o.present_gflops;
  d["best_gflops"] = o.best_gflops;
  d["gain"] = o.gain;
  d["noise"] = o.noise;
  d["improved"] = o.improved;
  d["verdict"] = o.verdict;
  d["fastest"] = o.fastest;
  d["rule"] = o.rule;
  return d;
}

nb::dict to_python(const TuneReport& report) {
  nb::dict d;
  nb::list groups;
  for (const TuneGroup& group : report.groups) {
    nb::dict g;
    nb::list problems, candidates, outcomes;
    for (const TuneProblem& p : group.problems) problems.append(to_python(p));
    for (const Candidate& c : group.candidates) candidates.append(to_python(c));
    for (const TuneOutcome& o : group.outcomes) outcomes.append(to_python(o));
    g["kernel"] = group.kernel;
    g["space"] = group.space;
    g["problems"] = problems;
    g["candidates"] = candidates;
    g["outcomes"] = outcomes;
    groups.append(g);
  }
  d["device"] = report.device;
  d["driver"] = report.driver;
  d["fingerprint"] = report.fingerprint;
  d["file"] = report.file;
  d["records"] = report.records;
  d["seconds"] = report.seconds;
  d["interrupted"] = report.interrupted;
  d["groups"] = groups;
  return d;
}

nb::dict to_python(const TuneProgress& p) {
  nb::dict d;
  d["kernel"] = p.group ? p.group->kernel : "";
  d["problems"] = p.group ? p.group->problems.size() : 0;
  d["group"] = p.group_number;
  d["groups"] = p.groups;
  d["phase"] = p.phase;
  d["evaluations"] = p.evaluations;
  d["failures"] = p.failures;
  d["best_ratio"] = p.best_ratio;
  d["best_gflops"] = std::isfinite(p.best_gflops) ? p.best_gflops : 0.0;
  d["default_gflops"] = std::isfinite(p.default_gflops) ? p.default_gflops : 0.0;
  d["elapsed"] = p.elapsed;
  d["budget"] = p.budget;
  return d;
}

nb::dict run_tuner(nb::list problems, nb::handle device, nb::handle progress, double budget, const std::vector<std::string>& kernels,
                   const std::string& strategy, std::uint64_t seed, bool write, const std::string& file, bool resume,
                   const std::string& record_sweep, std::size_t most_evaluations, nb::dict restrict) {
  TuneOptions options;
  options.budget = budget;
  for (nb::handle p : problems) options.problems.push_back(problem_from(p));
  options.kernels = kernels;
  options.strategy = strategy;
  options.seed = seed;
  options.write = write;
  options.file = file;
  options.resume = resume;
  options.record_sweep = record_sweep;
  options.most_evaluations = most_evaluations;
  for (auto [name, values] : restrict) options.restrict.emplace_back(nb::cast<std::string>(name), nb::cast<std::vector<int>>(values));
  bool interrupted = false;
  options.interrupted = [&] {
    const nb::gil_scoped_acquire gil;
    // The handler of SIGINT raises KeyboardInterrupt here; the search then ends, and what it found is kept.
    if (!interrupted && PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      interrupted = true;
    }
    return interrupted;
  };
  if (!progress.is_none())
    options.progress = [&](const TuneProgress& p) {
      const nb::gil_scoped_acquire gil;
      try {
        progress(to_python(p));
      } catch (nb::python_error& e) {  // Ctrl-C may arrive while Python runs, too
        if (!e.matches(PyExc_KeyboardInterrupt)) throw;
        interrupted = true;
      }
    };
  Context& context = context_from(device);
  TuneReport report;
  {
    const WithoutGil released;
    report = tune(context, options);
  }
  return to_python(report);
}

nb::dict run_trial(nb::handle problem, nb::handle params, const std::string& kernel, nb::handle device) {
  const TuneProblem p = problem_from(problem);
  const Params wanted = params_from(params);
  Context& context = context_from(device);
  Trial t;
  {
    const WithoutGil released;
    t = try_params(context, p, wanted, kernel);
  }
  nb::dict d;
  d["problem"] = to_python(t.problem);
  d["kernel"] = t.kernel;
  d["params_text"] = describe(t.params);
  d["present_kernel"] = t.present_kernel;
  d["present"] = to_python(t.present);
  d["present_text"] = describe(t.present);
  d["gflops"] = t.gflops;
  d["present_gflops"] = t.present_gflops;
  d["bound_gflops"] = t.bound_gflops;
  d["limit"] = t.limit;
  d["correct"] = t.correct;
  d["why"] = t.why;
  d["local_memory"] = t.local_memory;
  d["registers"] = t.registers;
  d["spills"] = t.spills;
  d["registers_estimate"] = t.registers_estimate;
  d["chunks_a"] = t.chunks_a;
  d["chunks_b"] = t.chunks_b;
  d["idle_a"] = t.idle_a;
  d["idle_b"] = t.idle_b;
  d["work_items"] = t.work_items;
  d["build_seconds"] = t.build_seconds;
  return d;
}

nb::dict to_python(const TunedRecord& r) {
  nb::dict d;
  d["fingerprint"] = r.fingerprint;
  d["kernel"] = r.kernel;
  d["dtype"] = std::string(name_of(r.dtype));
  d["layout"] = r.layout;
  d["class"] = to_string(r.shape_class);
  d["shape"] = nb::make_tuple(r.shape.m, r.shape.n, r.shape.k, r.shape.batch);
  d["params"] = to_python(r.params);
  d["params_text"] = describe(r.params);
  d["gflops"] = r.gflops;
  d["default_gflops"] = r.default_gflops;
  d["spread"] = r.spread;
  d["measured"] = r.measured;
  d["device"] = r.device_name;
  d["driver"] = r.driver_version;
  d["architecture"] = r.architecture;
  d["library"] = r.library_version;
  d["reach"] = r.reach;
  d["fastest"] = r.fastest ? nb::cast(*r.fastest) : nb::none();
  d["instead_of"] = r.instead_of;
  d["other_kernel"] = r.kernel_source != kernel_version(r.kernel);
  return d;
}

nb::dict read_tuning(const std::string& file) {
  const TuningFile content = read_tuning_file(file);
  nb::dict d;
  nb::list records;
  for (const TunedRecord& r : content.records) records.append(to_python(r));
  d["records"] = records;
  d["warnings"] = content.warnings;
  d["usable"] = !content.corrupt && !content.newer_format;
  return d;
}

nb::dict roofline_of(nb::handle device, const std::string& dtype) {
  Context& context = context_from(device);
  const DType type = dtype_named(dtype);
  Roofline r;
  {
    const WithoutGil released;
    r = measure_roofline(context.state(), type);
  }
  nb::dict d;
  d["peak_gflops"] = r.peak_gflops;
  d["read_gbs"] = r.read_gbs;
  d["triad_gbs"] = r.triad_gbs;
  d["launch_seconds"] = r.launch_seconds;
  return d;
}

nb::dict bound_of(nb::handle problem, nb::handle device) {
  const TuneProblem p = problem_from(problem);
  Context& context = context_from(device);
  Bound b;
  {
    const WithoutGil released;
    b = bound(measure_roofline(context.state(), p.dtype), context.device(), {p.m, p.n, p.k, p.batch}, p.dtype);
  }
  nb::dict d;
  d["gflops"] = b.flops / b.seconds * 1e-9;
  d["limit"] = to_string(b.limit);
  d["intensity"] = b.intensity;
  d["seconds"] = b.seconds;
  d["compute_seconds"] = b.compute_seconds;
  d["memory_seconds"] = b.memory_seconds;
  d["launch_seconds"] = b.launch_seconds;
  return d;
}

}  // namespace

void bind_tune(nb::module_& m) {
  m.def("tune", &run_tuner, "problems"_a, "device"_a.none(), "progress"_a.none(), "budget"_a, "kernels"_a, "strategy"_a, "seed"_a,
        "write"_a, "file"_a, "resume"_a, "record_sweep"_a, "most_evaluations"_a, "restrict"_a);
  m.def("try_params", &run_trial, "problem"_a, "params"_a.none(), "kernel"_a, "device"_a.none());
  m.def("roofline", &roofline_of, "device"_a.none(), "dtype"_a);
  m.def("bound", &bound_of, "problem"_a, "device"_a.none());
  m.def(
      "fma_peak",
      [](nb::handle device, const std::string& dtype, double flops) {
        Context& context = context_from(device);
        const DType type = dtype_named(dtype);
        const WithoutGil released;
        return measure_fma_peak(context.state(), type, flops);
      },
      "device"_a.none(), "dtype"_a, "flops"_a = 0.0,
      nb::sig("def fma_peak(device: Device | str | None, dtype: str, flops: float = 0.0) -> float"),
      "The device's rate of multiply-adds in GFLOP/s, measured now; with `flops` that of one launch of about so many operations.");
  m.def(
      "representative_problems",
      [](nb::handle device) {
        nb::list result;
        for (const TuneProblem& p : representative_problems(context_from(device).device())) result.append(to_python(p));
        return result;
      },
      "device"_a.none());
  m.def("user_tuning_file", [] { return user_tuning_file().string(); });
  m.def("tuning_journal", [] { return user_tuning_file().replace_extension(".journal").string(); });
  m.def("shipped_tuning_files", [] {
    std::vector<std::string> files;
    for (const auto& file : shipped_tuning_files()) files.push_back(file.string());
    return files;
  });
  m.def("tuning_file_name", [](const std::string& fingerprint) { return tuning_file_name(fingerprint); }, "fingerprint"_a);
  m.def("read_tuning_file", &read_tuning, "file"_a);
  m.def(
      "merge_tuning_file",
      [](const std::string& from, const std::string& into) {
        const TuningFile content = read_tuning_file(from);
        return nb::make_tuple(merge_into(into, content.records), content.records.size(), content.warnings);
      },
      "from_file"_a, "into"_a);
  m.def(
      "export_tuning",
      [](const std::vector<std::string>& files, const std::string& fingerprint) {
        std::vector<TunedRecord> records;
        for (const std::string& file : files)
          for (TunedRecord& r : read_tuning_file(file).records)
            if (fingerprint.empty() || r.fingerprint == fingerprint) records.push_back(std::move(r));
        return to_json(merged(std::move(records), {}));
      },
      "files"_a, "fingerprint"_a);
  m.def(
      "clear_tuning",
      [](const std::string& file, const std::string& fingerprint, const std::string& kernel) {
        return remove_from(file, fingerprint, kernel);
      },
      "file"_a, "fingerprint"_a, "kernel"_a);
  m.def(
      "untuned_choice",
      [](nb::handle problem, nb::handle device, bool shipped) -> nb::object {
        const TuneProblem t = problem_from(problem);
        const DeviceInfo& info = context_from(device).device();
        const Problem p = make_problem(t);
        const Choice choice = choose(p, info, shipped ? Records::shipped : Records::none);
        return nb::make_tuple(std::string(choice.kernel), to_python(choice.params));
      },
      "problem"_a, "device"_a.none(), "shipped"_a, "Kernel and constants without the user's records, with or without the shipped ones.");
  m.def(
      "tuned_for",
      [](nb::handle problem, nb::handle device, const std::string& kernel) -> nb::object {
        const TuneProblem t = problem_from(problem);
        const auto match = lookup(make_problem(t), context_from(device).device(), kernel);
        if (!match) return nb::none();
        nb::dict d = to_python(static_cast<const TunedRecord&>(*match));
        d["source"] = match->source == RecordSource::user ? "user" : match->source == RecordSource::shipped ? "shipped" : "architecture";
        d["exact"] = match->exact;
        d["distance"] = match->distance;
        d["other_driver"] = match->other_driver;
        d["other_kernel"] = match->other_kernel;
        d["reason"] = match->reason;
        return d;
      },
      "problem"_a, "device"_a.none(), "kernel"_a);
  m.def(
      "replay",
      [](const std::string& file, const std::string& strategy, std::uint64_t seed, std::size_t batch, std::size_t most, bool use_model) {
        const Replay run = replay(read_sweep(file), strategy, seed, batch, most, use_model);
        return nb::make_tuple(run.best, run.costs);
      },
      "file"_a, "strategy"_a, "seed"_a, "batch"_a, "most"_a, "use_model"_a);
}

}  // namespace sycl_mat::python
