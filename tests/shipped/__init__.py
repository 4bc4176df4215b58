"""Lists the tested settings, and the places where tests replace parts of the shipped product."""
