"""The causes by the stage at which a group is stuck, one module each; each function returns a finding or None."""
