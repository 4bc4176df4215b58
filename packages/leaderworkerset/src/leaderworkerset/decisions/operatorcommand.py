"""The operator of `lws operator`: its flags and its run."""

from leaderworkerset.operator.operatorprogram import flags as operator_flags
from leaderworkerset.operator.operatorprogram import run as run_operator
