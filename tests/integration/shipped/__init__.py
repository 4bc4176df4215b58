"""What ships is what is tested: every value that a user can set, in the processes that ship."""
