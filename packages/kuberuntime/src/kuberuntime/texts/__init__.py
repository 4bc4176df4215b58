"""Text for users: that of tenants and programs, cleaned and masked, and the differences of objects. Pure."""
