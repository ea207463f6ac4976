#include "view.hpp"

#include <algorithm>
#include <limits>

namespace sycl_mat {
namespace {

constexpr index_t largest = std::numeric_limits<index_t>::max();

/// Calls use(extent, stride) for every axis. No container: the checks of a tiny product must not allocate.
template <class Use>
void for_each_axis(const MatrixView& v, const Use& use) {
  use(v.rows, v.row_stride);
  use(v.cols, v.col_stride);
  for (const Axis& axis : v.batch) use(axis.extent, axis.stride);
}

/// Sizes, element counts and byte offsets must fit 64 bits: every later computation relies on it.
void check_view(const MatrixView& v, const char* name) {
  __extension__ typedef __int128 wide;
  wide low = 0, high = 0, count = size_of(v.dtype);
  for_each_axis(v, [&](index_t extent, index_t) {
    if (extent < 0) throw SizeError(std::string("Size Error: ") + name + " has a negative size (" + shape_text(v) + ").");
  });
  if (is_empty(v)) return;
  for_each_axis(v, [&](index_t extent, index_t stride) {
    const wide reach = wide(extent - 1) * stride * size_of(v.dtype);
    (reach < 0 ? low : high) += reach;
    count *= extent;
    if (count > largest || high > largest || low < -wide(largest))
      throw SizeError(std::string("Size Error: ") + name + " (" + shape_text(v) + ") has more bytes than 64-bit arithmetic can address.");
  });
  if (v.data == nullptr) throw InputError(std::string(name) + " has a null data pointer.");
}

void check_size(index_t have, index_t want, const char* what, const MatrixView& x, const MatrixView& y) {
  if (have != want)
    throw SizeError(std::string("Size Error: ") + what + " differ: " + shape_text(x) + " and " + shape_text(y) + " (" +
                    std::to_string(have) + " is not " + std::to_string(want) + ").");
}

/// `v` with batch axes as in `shape` (extents of D), stride 0 where it repeats.
MatrixView broadcast(const MatrixView& v, const std::vector<Axis>& shape, const char* name) {
  MatrixView out = v;
  out.batch.assign(shape.size(), Axis{});
  if (v.batch.size() > shape.size())
    throw DimensionError(std::string("Dimension Error: ") + name + " has " + std::to_string(v.batch.size()) +
                         " batch axes, the result only " + std::to_string(shape.size()) + ".");
  const std::size_t lead = shape.size() - v.batch.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Axis axis = i < lead ? Axis{1, 0} : v.batch[i - lead];
    if (axis.extent != 1 && axis.extent != shape[i].extent)
      throw SizeError(std::string("Size Error: ") + name + " (" + shape_text(v) + ") does not broadcast to the result's batch axis of " +
                      std::to_string(shape[i].extent) + ".");
    out.batch[i] = {shape[i].extent, axis.extent == 1 ? 0 : axis.stride};
  }
  return out;
}

bool merges(const MatrixView& v, std::size_t outer, std::size_t inner) {
  return v.batch[outer].stride == v.batch[inner].stride * v.batch[inner].extent;
}

DType accumulator_of(DType t) {
  switch (t) {
    case DType::float64:
      return DType::float64;
    case DType::int8:
    case DType::int32:
      return DType::int32;
    default:
      return DType::float32;
  }
}

/// Row-major where both forms fit, so that fewer layouts of a kernel are built.
Operand operand(const MatrixView& v) {
  Operand o;
  o.data = v.data;
  if (v.col_stride == 1 || v.cols <= 1) {
    o.ld = v.rows <= 1 ? std::max<index_t>(v.cols, 1) : v.row_stride;
  } else {
    o.transposed = true;
    o.ld = v.cols <= 1 ? std::max<index_t>(v.rows, 1) : v.col_stride;
  }
  const std::size_t axes = v.batch.size();
  if (axes > 0) o.inner = v.batch[axes - 1].stride;
  if (axes > 1) o.outer = v.batch[axes - 2].stride;
  return o;
}

bool row_major_form(const MatrixView& v) { return v.col_stride == 1 || v.cols <= 1; }

}  // namespace

std::string_view name_of(DType t) {
  switch (t) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::int8:
      return "int8";
    case DType::int32:
      return "int32";
  }
  return "?";
}

std::string shape_text(const MatrixView& v) {
  std::string out;
  for (const Axis& axis : v.batch) out += std::to_string(axis.extent) + "×";
  return out + std::to_string(v.rows) + "×" + std::to_string(v.cols);
}

Operands check(const MatrixView& a, const MatrixView& b, const MatrixView* c, const MatrixView& d, const GemmOptions& options) {
  const Epilogue& e = options.epilogue;
  check_size(b.rows, a.cols, "the columns of A and the rows of B", a, b);
  check_size(d.rows, a.rows, "the rows of A and of the result", a, d);
  check_size(d.cols, b.cols, "the columns of B and of the result", b, d);
  if (b.dtype != a.dtype)
    throw UnsupportedError("A is " + std::string(name_of(a.dtype)) + " and B " + std::string(name_of(b.dtype)) + ": convert one of them.");
  if (a.dtype == DType::int32) throw UnsupportedError("there is no int32 product; int8 × int8 gives int32.");
  const DType out = a.dtype == DType::int8 ? DType::int32 : a.dtype;
  if (d.dtype != out)
    throw UnsupportedError("the result of " + std::string(name_of(a.dtype)) + " operands is " + std::string(name_of(out)) + ", not " +
                           std::string(name_of(d.dtype)) + ".");
  if (e.beta != 0 && !c) throw InputError("beta is not zero, but there is no C.");
  if (a.dtype == DType::int8 && (e.activation != Activation::none || e.alpha != double(int(e.alpha)) || e.beta != double(int(e.beta))))
    throw UnsupportedError("an int8 product takes whole alpha and beta and no activation.");
  if (e.bias_axis != BiasAxis::none && !e.bias && d.rows > 0 && d.cols > 0) throw InputError("the bias has a null data pointer.");
  check_view(a, "A");
  check_view(b, "B");
  check_view(d, "the result");
  const bool empty = is_empty(d);  // then NumPy gives strides of zero
  for_each_axis(d, [&](index_t extent, index_t stride) {
    if (!empty && extent > 1 && stride == 0) throw InputError("the result has a stride of zero: several elements would share one place.");
  });

  Operands o;
  o.d = d;
  o.a = broadcast(a, d.batch, "A");
  o.b = broadcast(b, d.batch, "B");
  if (e.bias_axis != BiasAxis::none)
    o.bias = row_major(const_cast<void*>(e.bias), 1, e.bias_axis == BiasAxis::column ? d.cols : d.rows, accumulator_of(a.dtype));
  if (c && e.beta != 0) {
    check_size(c->rows, d.rows, "the rows of C and of the result", *c, d);
    check_size(c->cols, d.cols, "the columns of C and of the result", *c, d);
    if (c->dtype != out)
      throw UnsupportedError("C is " + std::string(name_of(c->dtype)) + ", the result " + std::string(name_of(out)) + ".");
    check_view(*c, "C");
    o.c = broadcast(*c, d.batch, "C");
  }
  return o;
}

void collapse_batch(Operands& o) {
  std::vector<MatrixView*> views{&o.a, &o.b, &o.d};
  if (o.c) views.push_back(&*o.c);
  for (std::size_t i = o.d.batch.size(); i-- > 0;) {
    if (o.d.batch[i].extent == 1) {
      for (MatrixView* v : views) v->batch.erase(v->batch.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (std::size_t i = o.d.batch.size(); i-- > 1;) {
    if (!std::all_of(views.begin(), views.end(), [&](const MatrixView* v) { return merges(*v, i - 1, i); })) continue;
    for (MatrixView* v : views) {
      v->batch[i - 1] = {v->batch[i - 1].extent * v->batch[i].extent, v->batch[i].stride};
      v->batch.erase(v->batch.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

bool is_empty(const MatrixView& v) {
  bool empty = false;
  for_each_axis(v, [&](index_t extent, index_t) { empty = empty || extent == 0; });
  return empty;
}

ByteRange bytes_of(const MatrixView& v) {
  if (is_empty(v)) return {0, 0};
  ByteRange range{0, size_of(v.dtype)};
  for_each_axis(v, [&](index_t extent, index_t stride) {
    const index_t reach = (extent - 1) * stride * size_of(v.dtype);
    (reach < 0 ? range.begin : range.end) += reach;
  });
  return range;
}

bool same_places(const MatrixView& x, const MatrixView& y) {
  if (x.data != y.data || x.row_stride != y.row_stride || x.col_stride != y.col_stride) return false;
  for (std::size_t i = 0; i < x.batch.size(); ++i)
    if (x.batch[i].stride != y.batch[i].stride) return false;
  return true;
}

bool may_overlap(const MatrixView& x, const MatrixView& y) {
  const auto [xb, xe] = bytes_of(x);
  const auto [yb, ye] = bytes_of(y);
  if (xb == xe || yb == ye) return false;
  const auto px = reinterpret_cast<std::intptr_t>(x.data), py = reinterpret_cast<std::intptr_t>(y.data);
  return px + xb < py + ye && py + yb < px + xe;
}

bool has_normal_form(const MatrixView& v) {
  const bool unit = row_major_form(v) || v.row_stride == 1 || v.rows <= 1;
  return unit && reinterpret_cast<std::uintptr_t>(v.data) % static_cast<std::uintptr_t>(size_of(v.dtype)) == 0;
}

Problem make_problem(const Operands& o, const GemmOptions& options) {
  Problem p;
  p.dtype = o.a.dtype;
  p.accumulator = accumulator_of(o.a.dtype);
  p.out = o.d.dtype;
  p.epilogue = options.epilogue;
  p.precision = options.precision;
  if (o.bias) p.epilogue.bias = o.bias->data;
  const std::size_t axes = o.d.batch.size();
  if (axes > 0) p.batch_inner = o.d.batch[axes - 1].extent;
  if (axes > 1) p.batch_outer = o.d.batch[axes - 2].extent;

  MatrixView a = o.a, b = o.b, d = o.d;
  std::optional<MatrixView> c = o.c;
  if (!row_major_form(d)) {
    a = o.b.transposed();
    b = o.a.transposed();
    d = o.d.transposed();
    if (c) c = o.c->transposed();
    if (p.epilogue.bias_axis == BiasAxis::column) {
      p.epilogue.bias_axis = BiasAxis::row;
    } else if (p.epilogue.bias_axis == BiasAxis::row) {
      p.epilogue.bias_axis = BiasAxis::column;
    }
  }
  p.m = d.rows;
  p.n = d.cols;
  p.k = a.cols;
  p.a = operand(a);
  p.b = operand(b);
  if (b.cols == 1 && b.rows > 1 && b.row_stride == 1) {  // a vector: along K, as kernels read it fastest
    p.b.transposed = true;
    p.b.ld = b.rows;
  }
  p.d = operand(d);
  if (c) p.c = operand(*c);
  return p;
}

}  // namespace sycl_mat
