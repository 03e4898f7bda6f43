# Third-party libraries: those installed, else fetched at a pinned commit.
include(FetchContent)
set(FETCHCONTENT_QUIET OFF)

set(BENCHMARK_ENABLE_TESTING OFF)
set(BENCHMARK_ENABLE_INSTALL OFF)
set(BENCHMARK_ENABLE_WERROR OFF)
set(INSTALL_GTEST OFF)
set(JSON_BuildTests OFF)
set(ZLIB_BUILD_EXAMPLES OFF)

FetchContent_Declare(benchmark
  GIT_REPOSITORY https://github.com/google/benchmark.git
  GIT_TAG c58e6d0710581e3a08d65c349664128a8d9a2461  # 1.9.1
  FIND_PACKAGE_ARGS 1.7.1)
FetchContent_Declare(nlohmann_json
  GIT_REPOSITORY https://github.com/nlohmann/json.git
  GIT_TAG 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03  # 3.11.3
  FIND_PACKAGE_ARGS 3.10)
FetchContent_Declare(ZLIB
  GIT_REPOSITORY https://github.com/madler/zlib.git
  GIT_TAG 51b7f2abdade71cd9bb0e7a373ef2610ec6f9daf  # 1.3.1
  FIND_PACKAGE_ARGS)
FetchContent_MakeAvailable(benchmark nlohmann_json ZLIB)
if(NOT TARGET ZLIB::ZLIB)
  target_include_directories(zlibstatic INTERFACE ${zlib_SOURCE_DIR} ${zlib_BINARY_DIR})
  add_library(ZLIB::ZLIB ALIAS zlibstatic)
endif()

if(GEMM_BENCH_TESTS)
  FetchContent_Declare(googletest
    GIT_REPOSITORY https://github.com/google/googletest.git
    GIT_TAG f8d7d77c06936315286eb55f8de22cd23c188571  # 1.14.0
    FIND_PACKAGE_ARGS 1.10 NAMES GTest)
  FetchContent_MakeAvailable(googletest)
endif()

# Optional: without it loops run on one core, which the record says. What compilers know by themselves is `omp simd`.
find_package(OpenMP COMPONENTS CXX)
if(NOT OpenMP_CXX_FOUND)
  message(STATUS "No OpenMP: CPU kernels run on one core (Clang needs libomp-dev)")
  add_library(OpenMP::OpenMP_CXX INTERFACE IMPORTED)
  target_compile_options(OpenMP::OpenMP_CXX INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp-simd;-Wno-unknown-pragmas>")
endif()

# Optional: one CPU baseline more.
set(BLA_VENDOR OpenBLAS)
find_package(BLAS QUIET)
find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread x86_64-linux-gnu aarch64-linux-gnu)
if(NOT BLAS_FOUND OR NOT OPENBLAS_INCLUDE_DIR)
  message(STATUS "No OpenBLAS: building without that baseline")
endif()
