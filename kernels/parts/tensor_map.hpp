// Tensor maps: the descriptors of a matrix for TMA (cp.async.bulk.tensor).
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/driver_function.hpp"

namespace gemm {

// TMA's element types; types of one byte are all alike to it.
template <typename T>
constexpr CUtensorMapDataType kMapType = sizeof(T) == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                         : std::is_same_v<T, __nv_bfloat16>
                                             ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                         : std::is_same_v<T, __half>
                                             ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                         : std::is_same_v<T, std::int32_t>
                                             ? CU_TENSOR_MAP_DATA_TYPE_INT32
                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;

// Describes a matrix of `rows` rows of `columns` elements, `pitch` elements apart. Boxes are stored
// row by row in shared memory, with the given swizzle (the row of a box must then be as long as the
// swizzle). The matrix and its rows must begin at multiples of 16 bytes. TFLOAT32 rounds FP32 on
// the way. Throws std::runtime_error.
template <typename T>
CUtensorMap tensor_map(const T* matrix, std::int64_t rows, std::int64_t columns, std::int64_t pitch,
                       unsigned box_rows, unsigned box_columns,
                       CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                       CUtensorMapDataType type = kMapType<T>) {
  const auto encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  if (encode == nullptr) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  const auto unsigned_64 = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t size[] = {unsigned_64(columns), unsigned_64(rows)};
  const cuuint64_t row_bytes[] = {unsigned_64(pitch) * sizeof(T)};
  const cuuint32_t box[] = {box_columns, box_rows}, every[] = {1, 1};
  CUtensorMap map{};
  const CUresult result =
      encode(&map, type, 2, const_cast<T*>(matrix), size, row_bytes, box, every,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses " + std::to_string(rows) + " x " +
                             std::to_string(columns) + " elements: error " +
                             std::to_string(result));
  return map;
}

}  // namespace gemm
