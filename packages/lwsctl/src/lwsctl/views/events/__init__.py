"""Events: their order, the reasons in warnings, and the evidence for a view."""
