"""The growth of the work of decisions with their input: inputs of many shapes, a recipe for each function, and counters."""
