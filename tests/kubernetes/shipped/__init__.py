"""The shipped processes, with every setting."""
