"""Storms of `lws chaos`: faults in their order, their effects, and the report."""
