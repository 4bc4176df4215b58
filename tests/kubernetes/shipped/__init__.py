"""The processes that ship, with every setting."""
