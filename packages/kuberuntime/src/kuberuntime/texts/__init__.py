"""Text for users: cleaned and masked text of tenants and programs, and differences of objects. Pure."""
