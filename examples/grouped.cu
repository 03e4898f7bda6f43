// Groups of a mixture of experts, and batches: the naive kernel, whose threads find the group of
// their row of A and C. A file that declares nothing is given plain products only.
//
//   gemm_bench --gemm_kernel=grouped.cu --gemm_shapes=grouped:8x512x1024/zipf,batched:8x512
#include "gemm_kernel.h"

constexpr unsigned gemm_kernel_takes = gemm::kBatches | gemm::kGroups;

__global__ void grouped(gemm::Call p) {
  const long long column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row >= p.batch * p.m || column >= p.n) return;
  long long group = row / p.m;  // of a batch
  if (p.row_starts != nullptr)
    for (group = 0; p.row_starts[group + 1] <= row;) ++group;
  const gemm::Input *a = p.a + row * p.k, *b = p.b + group * p.k * p.n + column;
  float sum = 0;
  for (long long l = 0; l < p.k; ++l) sum += float(a[l]) * float(b[l * p.n]);
  p.c[row * p.n + column] = gemm::Output(sum);
}

auto launch(gemm::Call p) {
  return gemm::launch<grouped>({gemm::blocks(p.n, 16), gemm::blocks(p.batch * p.m, 16)}, {16, 16},
                               p);
}
