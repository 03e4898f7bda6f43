# Is there a CUDA compiler, and for which architectures does it build?
#
# CMAKE_CUDA_ARCHITECTURES=native fails to configure on a machine without a GPU, so the default is chosen here: the
# GPUs that are present, else one that has every instruction of the kernels and the probes.
#
# Where that one is the default nothing will run, and what is of use is what compilers say: GEMM_BENCH_ALSO_COMPILED_FOR
# has the oldest as well, for the kernels, whose registers and spills differ between architectures
# (kernels/resources_test.py); kernels/CMakeLists.txt takes a newer one for kernels that do not run there.
# To build for other machines, give CMAKE_CUDA_ARCHITECTURES.

set(GEMM_BENCH_HAS_CUDA FALSE)
if(NOT GEMM_BENCH_CUDA)
  message(STATUS "CUDA is switched off: building the CPU kernels alone")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "No CUDA compiler (set CUDACXX or put nvcc on PATH): building the CPU kernels alone")
  return()
endif()

if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE capabilities ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(NOT failed AND capabilities MATCHES "^[0-9]+[.][0-9]")
    string(REGEX MATCHALL "[0-9]+[.][0-9]+" architectures "${capabilities}")
    list(REMOVE_DUPLICATES architectures)
    string(REPLACE "." "" architectures "${architectures}")
    list(TRANSFORM architectures REPLACE "^90$" "90a")  # wgmma and setmaxnreg need it
  else()
    set(architectures 90a-real)
    set(GEMM_BENCH_ALSO_COMPILED_FOR 75 CACHE INTERNAL "Further architectures of the kernels")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES STREQUAL "90a-real")  # given since
  unset(GEMM_BENCH_ALSO_COMPILED_FOR CACHE)
endif()
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}; kernels also: ${GEMM_BENCH_ALSO_COMPILED_FOR}")

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)  # not sooner: the check of the compiler does not know the flag yet
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 12.4 REQUIRED)  # nvcc 12.0 knows no std::source_location, and FP8's mma.sync came with 12.4
set(GEMM_BENCH_HAS_CUDA TRUE)
