"""What people read: tables, progress, live views, outcomes."""
