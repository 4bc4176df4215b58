"""The causes by the stage at which a group stands still, one file each: observed objects in, a finding or None out."""
