"""Controllers: from changes to keys, from keys to plans, from plans to writes."""
