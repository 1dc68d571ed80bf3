"""Layer 0: errors, flags, dtypes, places, names and nested containers; knows no other sampan package."""
