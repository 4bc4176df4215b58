"""Observes the objects of each kind, calls the core, and returns the plan. Each driver also declares its watches."""
