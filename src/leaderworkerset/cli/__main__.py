"""`python -m leaderworkerset.cli` is the command `lws`."""

from leaderworkerset.cli.app import main

main()
