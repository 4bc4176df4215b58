"""Lists the tested settings, and the places where tests replace a part of the shipped product."""
