"""The machine code of kernels (SASS): its hot loops in figures, and how these are held."""
