"""Patches: JSON patch, merge patch, strategic merge patch, server-side apply, and who owns which field. All pure."""
