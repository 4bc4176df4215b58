"""The values in Kubernetes objects: metadata, names, selectors, quantities, times, resources. Without I/O or clock."""
