"""The clusters of tests: the embedded one, and a control plane with nodes of kwok."""
