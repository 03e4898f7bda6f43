# What judges a result compiles with these options after the user's own: with -ffast-math, which icpx has by default, a
# compiler may take a comparison with NaN for true. The CPU kernels take the user's flags as they are.
add_library(exact_math INTERFACE)
target_compile_options(exact_math INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<CXX_COMPILER_ID:NVHPC>,-Kieee,-fno-fast-math>>
  $<$<COMPILE_LANG_AND_ID:CXX,IntelLLVM>:-fp-model=precise>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-fast-math;--ftz=false;--prec-div=true;--prec-sqrt=true>)
