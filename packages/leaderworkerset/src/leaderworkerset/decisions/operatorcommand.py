"""Exports the operator command `lws operator` and its flags."""

from leaderworkerset.operator.operatorprogram import flags as operator_flags
from leaderworkerset.operator.operatorprogram import run as run_operator
