"""Figures over the size of the problem."""
