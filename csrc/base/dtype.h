// The element types. THE list: Python reads it from here through the bindings.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sampan {

// SAMPAN_DTYPES(X): X(name, size in bytes, kind), kind: b bool, u unsigned, i signed, f floating, c complex.
#define SAMPAN_DTYPES(X) \
  X(bool, 1, 'b')        \
  X(uint8, 1, 'u')       \
  X(int8, 1, 'i')        \
  X(int16, 2, 'i')       \
  X(int32, 4, 'i')       \
  X(int64, 8, 'i')       \
  X(float16, 2, 'f')     \
  X(bfloat16, 2, 'f')    \
  X(float32, 4, 'f')     \
  X(float64, 8, 'f')     \
  X(complex64, 8, 'c')   \
  X(complex128, 16, 'c')

enum class DType : uint8_t {
#define SAMPAN_ENUM(name, size, kind) k_##name,
  SAMPAN_DTYPES(SAMPAN_ENUM)
#undef SAMPAN_ENUM
      kCount
};

constexpr size_t dtype_size(DType t) {
  constexpr uint8_t sizes[] = {
#define SAMPAN_SIZE(name, size, kind) size,
      SAMPAN_DTYPES(SAMPAN_SIZE)
#undef SAMPAN_SIZE
  };
  return sizes[static_cast<uint8_t>(t)];
}

constexpr const char* dtype_name(DType t) {
  constexpr const char* names[] = {
#define SAMPAN_NAME(name, size, kind) #name,
      SAMPAN_DTYPES(SAMPAN_NAME)
#undef SAMPAN_NAME
  };
  return names[static_cast<uint8_t>(t)];
}

constexpr char dtype_kind(DType t) {
  constexpr char kinds[] = {
#define SAMPAN_KIND(name, size, kind) kind,
      SAMPAN_DTYPES(SAMPAN_KIND)
#undef SAMPAN_KIND
  };
  return kinds[static_cast<uint8_t>(t)];
}

constexpr bool is_differentiable(DType t) { return dtype_kind(t) == 'f' || dtype_kind(t) == 'c'; }

}  // namespace sampan
