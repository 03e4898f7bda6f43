# Is there a CUDA compiler, and for which architectures does it build?
#
# CMAKE_CUDA_ARCHITECTURES=native fails to configure on a machine without a GPU, so the default is chosen here: the
# GPUs that are present, else a list from Turing on.
#
# Where that list is the default nothing will run, so only the kernels, whose registers and spills differ between
# architectures (kernels/resources_test.py), are compiled for all of it. What measures and what tests is compiled for
# GEMM_BENCH_MEASURING_ARCHITECTURES, there one that has every instruction the probes use. To build for other machines,
# give CMAKE_CUDA_ARCHITECTURES: then both lists are that.

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
    # 8.6 runs the code of 8.0; 8.9 does, too, but has FP8. 90 leaves its PTX in, so that later GPUs run what they can
    # compile at start.
    set(architectures 75-real 80-real 89-real 90)
    set(GEMM_BENCH_ARCHITECTURES_WITHOUT_GPU "${architectures}" CACHE INTERNAL "The default of a machine without a GPU")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures")
endif()
set(GEMM_BENCH_MEASURING_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
if(CMAKE_CUDA_ARCHITECTURES STREQUAL "${GEMM_BENCH_ARCHITECTURES_WITHOUT_GPU}")
  set(GEMM_BENCH_MEASURING_ARCHITECTURES 90a)
endif()
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}; of what measures: ${GEMM_BENCH_MEASURING_ARCHITECTURES}")

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)  # not sooner: the check of the compiler does not know the flag yet
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 12.0 REQUIRED)
set(GEMM_BENCH_HAS_CUDA TRUE)
