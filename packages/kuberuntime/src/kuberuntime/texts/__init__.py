"""Pure functions that prepare text for users: cleaning, masking, and differences between objects."""
