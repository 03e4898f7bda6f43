"""The subcommands of gemm-report, a module each.

Its docstring is what --help says, add() declares its options, run() does it: the exit code.
"""
