"""Makes this directory a package, so that pytest stops its cluster after its last test."""
