"""`python -m leaderworkerset.cli` is the command `lws`."""

from leaderworkerset.cli.process.entry import main

main()
