"""Many GPUs measured alike: which of them is slow, wrong or missing, and why."""
