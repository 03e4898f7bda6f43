"""Old name, until nothing asks for it."""

from markupsafe import escape as html  # noqa: F401

from gemm_report.pages.render import *  # noqa: F403
