"""Figures that have a line for each row."""
