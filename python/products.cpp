// The general product and its explanation, on arrays that sycl_mat/_products.py has brought into shape: exact ndarrays of one supported
// dtype, native and aligned, with at least two dimensions.
#include <nanobind/stl/string.h>

#include <initializer_list>
#include <string>

#include "array.hpp"
#include "operands.hpp"
#include "options.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sycl_mat::python {
namespace {

MatrixView operand_from(nb::handle value, const char* name) {
  if (!PyArray_Check(value.ptr())) throw nb::type_error((std::string(name) + " is not an array").c_str());
  auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
  const std::optional<DType> type = dtype_of(array);
  if (!type || !is_plain(array) || PyArray_NDIM(array) < 2) throw nb::value_error((std::string(name) + " is not in normal form").c_str());
  return view_of(array, *type, Vector::row);
}

Activation activation_from(const std::string& name) {
  if (name == "none") return Activation::none;
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  if (name == "sigmoid") return Activation::sigmoid;
  if (name == "tanh") return Activation::tanh;
  if (name == "silu") return Activation::silu;
  throw nb::value_error(("activation: 'relu', 'gelu', 'sigmoid', 'tanh' or 'silu' is wanted, not '" + name + "'").c_str());
}

struct Product {
  Context* context;
  MatrixView a, b, c, d;
  bool has_c = false;
  GemmOptions options;
};

Product product_from(nb::handle a, nb::handle b, nb::handle c, nb::handle out, double alpha, double beta, nb::handle bias, int bias_axis,
                     const std::string& activation, nb::handle device, nb::handle kernel, nb::handle params, nb::handle backend,
                     nb::handle precision, nb::handle max_device_memory) {
  Product p;
  p.options = options_from(kernel, params, backend, precision, max_device_memory);
  p.a = operand_from(a, "a");
  p.b = operand_from(b, "b");
  p.d = operand_from(out, "out");
  p.has_c = !c.is_none();
  if (p.has_c) p.c = operand_from(c, "c");
  p.options.epilogue.alpha = alpha;
  p.options.epilogue.beta = beta;
  p.options.epilogue.activation = activation_from(activation);
  if (!bias.is_none()) {
    p.options.epilogue.bias = PyArray_DATA(reinterpret_cast<PyArrayObject*>(bias.ptr()));
    p.options.epilogue.bias_axis = bias_axis == 0 ? BiasAxis::row : BiasAxis::column;
  }
  p.context = &context_from(device);
  return p;
}

nb::dict explanation_as_dict(const Explanation& e) {
  nb::dict d;
  d["device"] = e.device;
  d["kernel"] = e.kernel;
  d["constants"] = e.constants;
  d["reason"] = e.reason;
  d["memory"] = e.memory;
  d["program"] = e.program;
  d["launch_range"] = e.launch_range;
  d["local_memory"] = e.local_memory;
  d["scratch"] = e.scratch;
  d["registers"] = e.registers;
  d["spills"] = e.spills;
  return d;
}

/// A product under way, and what must live until it is done.
class Pending {
 public:
  Pending(Event event, nb::object operands) : event_(std::move(event)), operands_(std::move(operands)) {}
  ~Pending() {
    try {
      wait();
    } catch (...) {  // whoever wanted to know has called wait()
    }
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  void wait() {
    const WithoutGil released;
    event_.wait();
  }
  bool done() const { return event_.done(); }

 private:
  Event event_;
  nb::object operands_;
};

/// Whether nobody can see that this product is still under way: every operand is an Array's, which nobody else knows.
bool may_run_ahead(std::initializer_list<nb::handle> operands) {
  for (nb::handle operand : operands) {
    if (operand.is_none()) continue;
    const Memory* memory = memory_of(operand);
    if (!memory || !memory->is_private()) return false;
  }
  return true;
}

}  // namespace

void bind_products(nb::module_& m) {
  nb::class_<Pending>(m, "Pending").def("wait", &Pending::wait).def("done", &Pending::done);
  m.def(
      "product",
      [](nb::handle a, nb::handle b, nb::handle c, nb::handle out, double alpha, double beta, nb::handle bias, int bias_axis,
         const std::string& activation, nb::handle device, nb::handle kernel, nb::handle params, nb::handle backend, nb::handle precision,
         nb::handle max_device_memory, bool wait) -> nb::object {
        Product p = product_from(a, b, c, out, alpha, beta, bias, bias_axis, activation, device, kernel, params, backend, precision,
                                 max_device_memory);
        p.options.wait = wait && !may_run_ahead({a, b, c, out, bias});
        Event event;
        {
          WithoutGil release;
          event = gemm(*p.context, p.a, p.b, p.has_c ? &p.c : nullptr, p.d, p.options);
        }
        if (wait) return nb::none();
        return nb::cast(new Pending(std::move(event), nb::make_tuple(a, b, c, out, bias)), nb::rv_policy::take_ownership);
      },
      "a"_a, "b"_a, "c"_a.none(), "out"_a, "alpha"_a, "beta"_a, "bias"_a.none(), "bias_axis"_a, "activation"_a, "device"_a.none(),
      "kernel"_a.none(), "params"_a.none(), "backend"_a.none(), "precision"_a.none(), "max_device_memory"_a.none(), "wait"_a = true,
      nb::sig("def product(a: object, b: object, c: object, out: object, alpha: float, beta: float, bias: object, bias_axis: int, "
              "activation: str, device: Device | str | None, kernel: object, params: object, backend: object, precision: object, "
              "max_device_memory: int | None, wait: bool = True) -> Pending | None"));
  m.def(
      "explain_product",
      [](nb::handle a, nb::handle b, nb::handle c, nb::handle out, double alpha, double beta, nb::handle bias, int bias_axis,
         const std::string& activation, nb::handle device, nb::handle kernel, nb::handle params, nb::handle backend, nb::handle precision,
         nb::handle max_device_memory) {
        Product p = product_from(a, b, c, out, alpha, beta, bias, bias_axis, activation, device, kernel, params, backend, precision,
                                 max_device_memory);
        Explanation e;
        {
          WithoutGil release;
          e = explain(*p.context, p.a, p.b, p.has_c ? &p.c : nullptr, p.d, p.options);
        }
        return explanation_as_dict(e);
      },
      "a"_a, "b"_a, "c"_a.none(), "out"_a, "alpha"_a, "beta"_a, "bias"_a.none(), "bias_axis"_a, "activation"_a, "device"_a.none(),
      "kernel"_a.none(), "params"_a.none(), "backend"_a.none(), "precision"_a.none(), "max_device_memory"_a.none());
}

}  // namespace sycl_mat::python
