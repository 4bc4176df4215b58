"""Exports the manager command `lws manager`, with flags in Go syntax."""

from leaderworkerset.manager.goflags import Flag, FlagError, HelpRequestedError
from leaderworkerset.manager.goflags import parse as parse_flags
from leaderworkerset.manager.goflags import usage as flags_usage
from leaderworkerset.manager.managerflags import FLAGS as MANAGER_FLAGS
from leaderworkerset.manager.managerprogram import run as run_manager
