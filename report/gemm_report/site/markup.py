"""Old name, until nothing asks for it."""

from markupsafe import escape

from gemm_report.pages.render import *  # noqa: F403

html = escape
