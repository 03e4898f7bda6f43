// The program. All that it does is in libgemm_bench.so, which Python loads, too: its machine code
// of GPU kernels is large.
extern "C" void gemm_bench_main(int argc, char** argv);

int main(int argc, char** argv) { gemm_bench_main(argc, argv); }
