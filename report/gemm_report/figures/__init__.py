"""Pictures of records: each as PNG and SVG, with the plotted data as CSV."""
