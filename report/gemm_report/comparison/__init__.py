"""What differs between runs, and whether that is more than noise."""
