"""Events: in the order in which they happened, what warnings explain, and what is known besides a view."""
