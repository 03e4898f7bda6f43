"""How numbers, tables and files are written."""
