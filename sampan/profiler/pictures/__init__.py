"""Models, Programs and Plans as pictures: what a picture shows, its layout, and its files."""
