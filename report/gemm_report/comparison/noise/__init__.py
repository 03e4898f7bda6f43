"""How far medians are apart though the code is the same."""
