"""The subcommands of gemm-report: a module each, with HELP, add and run."""
