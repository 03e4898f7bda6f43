// What a copy of boxes (cp.async.bulk.tensor) wants to know of a matrix.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gemm::tensor {

// Of `rows` rows of FP32, `columns` long and `pitch` elements apart, in boxes that lie row by row
// in shared memory. The matrix and its rows must begin at multiples of 16 bytes. The driver's
// function is asked for by name, so that nothing need be linked with the driver. Throws
// std::runtime_error.
inline CUtensorMap tensor_map(const float* matrix, std::int64_t rows, std::int64_t columns,
                              std::int64_t pitch, unsigned box_rows, unsigned box_columns) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 12000;
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode,
                                                              kSince, cudaEnableDefault, &found);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found);
#endif
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  const auto unsigned_64 = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const cuuint64_t size[] = {unsigned_64(columns), unsigned_64(rows)};
  const cuuint64_t row_bytes[] = {unsigned_64(pitch) * sizeof(float)};
  const cuuint32_t box[] = {box_columns, box_rows}, every[] = {1, 1};
  CUtensorMap map{};
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), size, row_bytes, box,
      every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled refuses " + std::to_string(rows) + " x " +
                             std::to_string(columns) + " elements: error " +
                             std::to_string(result));
  return map;
}

}  // namespace gemm::tensor
