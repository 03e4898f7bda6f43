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

# A CUDA compiler that was named or found must work: a program without GPU kernels is a choice that is said.
set(cpu_only "for the CPU kernels alone, give -DGEMM_BENCH_CUDA=OFF")
if(CMAKE_CUDA_COMPILER)
  set(nvcc ${CMAKE_CUDA_COMPILER})
elseif(NOT "$ENV{CUDACXX}" STREQUAL "")
  get_filename_component(nvcc "$ENV{CUDACXX}" PROGRAM PROGRAM_ARGS arguments)
  if(NOT nvcc)
    message(FATAL_ERROR "CUDACXX=$ENV{CUDACXX}: there is no such program: correct or unset it; ${cpu_only}")
  endif()
else()
  find_program(GEMM_BENCH_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin PATHS /usr/local/cuda/bin)
  mark_as_advanced(GEMM_BENCH_NVCC)
  if(GEMM_BENCH_NVCC)
    set(nvcc ${GEMM_BENCH_NVCC})
  elseif(NOT "$ENV{CUDA_HOME}$ENV{CUDAHOSTCXX}" STREQUAL "")
    message(FATAL_ERROR "CUDA_HOME=$ENV{CUDA_HOME}, CUDAHOSTCXX=$ENV{CUDAHOSTCXX}, but no nvcc was found: "
      "set CUDACXX to its path, or unset these; ${cpu_only}")
  else()
    message(STATUS "No CUDA compiler (set CUDACXX or put nvcc on PATH): building the CPU kernels alone")
    return()
  endif()
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

# CMake's own check hides nvcc's sentence in pages of output.
get_filename_component(host "$ENV{CUDAHOSTCXX}" PROGRAM)
if(CMAKE_CUDA_HOST_COMPILER)
  set(host "${CMAKE_CUDA_HOST_COMPILER}")
elseif(NOT host)
  set(host "$ENV{CUDAHOSTCXX}")
endif()
separate_arguments(arguments UNIX_COMMAND "${arguments} $ENV{CUDAFLAGS} ${CMAKE_CUDA_FLAGS}")
if(host)
  list(APPEND arguments -ccbin "${host}")
endif()
if(NOT GEMM_BENCH_CUDA_WORKS STREQUAL "${nvcc};${arguments}")
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/cuda_probe)
  file(WRITE ${probe}.cu "#include <cstdio>\n__global__ void kernel() {}\nint main() { std::puts(\"\"); }\n")
  execute_process(COMMAND ${nvcc} ${arguments} -c ${probe}.cu -o ${probe}.o
    OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(failed)
    string(STRIP "${said}" said)
    if(NOT said)
      set(said "${failed}")
    endif()
    message(FATAL_ERROR "The CUDA compiler ${nvcc} does not work:\n${said}\n"
      "If its host compiler is too new, set CUDAHOSTCXX to an older g++; ${cpu_only}.")
  endif()
  set(GEMM_BENCH_CUDA_WORKS "${nvcc};${arguments}" CACHE INTERNAL "What the check of the CUDA compiler passed with")
endif()
if(NOT CMAKE_CUDA_COMPILER AND GEMM_BENCH_NVCC AND "$ENV{CUDACXX}" STREQUAL "")
  set(CMAKE_CUDA_COMPILER ${GEMM_BENCH_NVCC} CACHE FILEPATH "CUDA compiler" FORCE)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)  # not sooner: the check of the compiler does not know the flag yet
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 12.4 REQUIRED)  # nvcc 12.0 knows no std::source_location, and FP8's mma.sync came with 12.4
set(GEMM_BENCH_HAS_CUDA TRUE)
