"""Rows of a record that figures show: the ladder, and how each precision compares."""
