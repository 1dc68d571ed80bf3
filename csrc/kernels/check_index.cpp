// check_index: indices as int64 counted from the start of their axis; raises for one outside of it, before anything uses it.
#include "exec/parallel.h"
#include "kernels/common.h"

namespace sampan::kernels {
namespace {

template <class I>
class CheckIndex final : public NativeOp {
 public:
  CheckIndex(Odometer<2> walk, Dims shape, int64_t size, bool allow_negative)
      : walk_(walk), shape_(std::move(shape)), size_(size), lowest_(allow_negative ? -size : 0) {}

  void run(char* const* buffers, char*) const override {
    const I* index = reinterpret_cast<const I*>(buffers[0]);
    int64_t* out = reinterpret_cast<int64_t*>(buffers[1]);
    parallel_for(walk_.total(), 2.0, [&](int64_t begin, int64_t end) {
      Odometer<2> at = walk_;
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const int64_t v = index[at.offset[0]];
        if (v < lowest_ || v >= size_) refuse(i, v);
        out[at.offset[1]] = v + (v < 0 ? size_ : 0);
      }
    });
  }

 private:
  [[noreturn]] void refuse(int64_t position, int64_t value) const {
    Dims at(shape_.size());
    for (size_t d = shape_.size(); d-- > 0;) {
      at[d] = position % shape_[d];
      position /= shape_[d];
    }
    const std::string valid = size_ ? std::to_string(lowest_) + " to " + std::to_string(size_ - 1) + " are valid" : "no index is valid";
    throw Error(ErrorKind::kIndex, "index" + (at.empty() ? "" : shape_text(at)) + " is " + std::to_string(value) + "; the axis has " +
                                       std::to_string(size_) + " entries, so " + valid);
  }

  Odometer<2> walk_;
  Dims shape_;
  int64_t size_;
  int64_t lowest_;  // valid index
};

std::unique_ptr<NativeOp> make_check_index(const NativeCall& c) {
  CallReader call("check_index", c);
  call.operands(1, 1);
  const Layout &index = call.input(0), &out = call.output(0);
  const int64_t size = call.integer("size", 0);
  const bool allow_negative = call.flag("allow_negative", true);
  call.no_more_attributes();
  call.index_dtype(index, "index");
  call.same_shape(out, shape_of(index), "the output");
  if (out.dtype != DType::k_int64) call.fail(ErrorKind::kDType, "the output must be int64");
  Odometer<2> walk;
  for (int d = 0; d < index.rank; ++d) walk.add_axis(index.shape[d], {index.strides[d], out.strides[d]});
  if (index.dtype == DType::k_int32) return std::make_unique<CheckIndex<int32_t>>(walk, shape_of(index), size, allow_negative);
  return std::make_unique<CheckIndex<int64_t>>(walk, shape_of(index), size, allow_negative);
}

const RegisterNative check_index("check_index", make_check_index);

}  // namespace
}  // namespace sampan::kernels
