"""Which rows of a record tell a kernel's story, and the ladder that they make."""
