// GEMM_CLONES before a function: where the program is built for other machines
// (GEMM_BENCH_PORTABLE), the compiler makes it for three generations of CPUs, and the loader
// chooses at run time. Elsewhere it is made for the CPU of this machine.
#pragma once

#ifdef GEMM_BENCH_PORTABLE
#define GEMM_CLONES [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define GEMM_CLONES
#endif
