"""Storms of `lws chaos`: faults in their order, what they did, and what is told of them."""
