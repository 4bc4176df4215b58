"""What this product does beyond upstream's contract: one folder for each capability, one row of the table in `enabled.py`."""
