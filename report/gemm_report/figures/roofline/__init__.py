"""Rooflines."""
