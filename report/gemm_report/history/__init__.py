"""Many records: trends, change points, and what changed there."""
