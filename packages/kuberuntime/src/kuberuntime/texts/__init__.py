"""Prepares text for users, by cleaning and masking it and by comparing objects. The functions are pure."""
