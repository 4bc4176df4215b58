"""How the work of decisions grows with their input: inputs of many shapes, a recipe per function, ways to count."""
