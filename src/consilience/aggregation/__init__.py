"""Making one answer of several. Rules are pure functions over arrays, chosen by name from a registry."""
