"""Events: their order, the reasons that warnings give, and the evidence for a view."""
