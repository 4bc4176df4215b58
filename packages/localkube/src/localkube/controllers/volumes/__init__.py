"""Volume claims on one machine."""
