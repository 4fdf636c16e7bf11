"""Tracked JSON values and the RFC 6902 patches that say what changed in them."""
