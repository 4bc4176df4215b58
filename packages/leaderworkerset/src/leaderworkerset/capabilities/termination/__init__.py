"""Terminates the workers of a group together with the leader (`podTerminationPolicy`)."""
