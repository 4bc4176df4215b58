"""`python -m leaderworkerset.cli` is the command `lws`."""

from leaderworkerset.cli.entry import main

main()
