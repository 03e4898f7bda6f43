"""Pages and tables that are made from records and kept in the repository."""
