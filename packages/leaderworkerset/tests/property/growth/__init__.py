"""Measures how the work of decisions grows with their input, for inputs of many shapes."""
