# Is there a CUDA compiler, and for which architectures does it build?
#
# CMAKE_CUDA_ARCHITECTURES=native fails to configure on a machine without a GPU, so the default is chosen here: the
# GPUs that are present, else a list from Turing to the newest that nvcc knows.

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
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND capabilities MATCHES "^[0-9]+[.][0-9]")
    string(REGEX MATCHALL "[0-9]+[.][0-9]+" architectures "${capabilities}")
    list(REMOVE_DUPLICATES architectures)
    string(REPLACE "." "" architectures "${architectures}")
    list(TRANSFORM architectures REPLACE "^90$" "90a")  # wgmma and setmaxnreg need it
  else()
    # 90 leaves its PTX in, so that later GPUs run what they can compile at start.
    set(architectures 75-real 80-real 86-real 89-real 90)
    foreach(newer 100 120)
      if(known MATCHES "sm_${newer}")
        list(APPEND architectures ${newer}-real)
      endif()
    endforeach()
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures")
endif()
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)  # not sooner: the check of the compiler does not know the flag yet
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 12.0 REQUIRED)
set(GEMM_BENCH_HAS_CUDA TRUE)
