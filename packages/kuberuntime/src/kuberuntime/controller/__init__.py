"""Controllers: turn changes into keys, keys into plans, and plans into writes."""
