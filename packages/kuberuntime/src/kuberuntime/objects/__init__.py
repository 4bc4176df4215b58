"""Values of Kubernetes objects: metadata, names, selectors, quantities, times, resources. Pure: no I/O, no clock."""
