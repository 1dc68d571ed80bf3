"""The version; the package's metadata is read from here."""

full_version = "0.1.0"
major, minor, patch = full_version.split(".")
