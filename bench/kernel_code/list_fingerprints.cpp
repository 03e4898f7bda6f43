// Prints the fingerprints of the GPU code in object files and programs, for fingerprint_test.py:
// architecture, hash ("-" where one name has two codes), function.
#include <cstdio>
#include <exception>

#include "bench/kernel_code/fingerprint.hpp"

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i)
      for (const auto& [function, hash] : gemm::bench::fingerprints_in(argv[i]))
        std::printf("%d %s %s\n", function.second, hash ? hash->c_str() : "-",
                    function.first.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "list_fingerprints: %s\n", error.what());
    return 2;
  }
}
