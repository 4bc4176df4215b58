"""The built-in gate on both clusters."""
