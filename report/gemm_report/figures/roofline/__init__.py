"""Figures of rates under roofs."""
