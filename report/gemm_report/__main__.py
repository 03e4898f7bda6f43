"""Lets `python -m gemm_report` do what the command gemm-report does."""

import signal

# Until there is something to tidy up, Ctrl-C ends the program without a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from gemm_report.cli import command

command()
