"""The simulated nodes, their taints, and pods that must leave them."""
