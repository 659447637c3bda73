"""Fetching images that requests name by URL."""
