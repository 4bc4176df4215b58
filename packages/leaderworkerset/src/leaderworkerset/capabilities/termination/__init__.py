"""Terminates the workers of a group together with their leader (`podTerminationPolicy`)."""
