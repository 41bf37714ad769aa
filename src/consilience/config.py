"""YAML to values."""
