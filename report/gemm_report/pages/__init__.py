"""Pages for the browser, each a single file."""
