// What cublas_test.cpp opens in place of cuBLAS and, with FAKE_CUBLASLT, in place of cuBLASLt: the
// names that are looked up. Only the versions are answered; releases before 13.1 have no emulation.
extern "C" {

#define NAME(function) \
  int function() { return 1; }

int cublasLtGetProperty(int part, int* value);

#ifdef FAKE_CUBLASLT
int cublasLtGetProperty(int part, int* value) {
  constexpr int kVersion[] = {FAKE_CUBLASLT};
  *value = kVersion[part];
  return 0;
}
NAME(cublasLtCreate)
NAME(cublasLtDestroy)
NAME(cublasLtMatmulDescCreate)
NAME(cublasLtMatmulDescDestroy)
NAME(cublasLtMatmulDescSetAttribute)
NAME(cublasLtMatrixLayoutCreate)
NAME(cublasLtMatrixLayoutDestroy)
NAME(cublasLtMatrixLayoutSetAttribute)
NAME(cublasLtMatmulPreferenceCreate)
NAME(cublasLtMatmulPreferenceDestroy)
NAME(cublasLtMatmulPreferenceSetAttribute)
NAME(cublasLtMatmulAlgoGetHeuristic)
NAME(cublasLtMatmul)
#else
// By the other library, so that this one is linked with it.
int cublasGetProperty(int part, int* value) { return cublasLtGetProperty(part, value); }
NAME(cublasGetStatusString)
NAME(cublasCreate_v2)
NAME(cublasDestroy_v2)
NAME(cublasSetMathMode)
NAME(cublasSetStream_v2)
NAME(cublasSetWorkspace_v2)
NAME(cublasGemmEx)
NAME(cublasGemmStridedBatchedEx)
#ifdef FAKE_EMULATION
NAME(cublasSetEmulationStrategy)
NAME(cublasSetFixedPointEmulationMantissaControl)
NAME(cublasSetFixedPointEmulationMaxMantissaBitCount)
#endif
#endif

}  // extern "C"
