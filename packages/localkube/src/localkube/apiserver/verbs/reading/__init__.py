"""The verbs that read: get, list, watch and logs."""
