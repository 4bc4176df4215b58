"""Pure functions for metadata, names, selectors, quantities, times and other values in Kubernetes objects."""
