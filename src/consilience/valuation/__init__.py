"""Valuation of property: sales brought to one table, split by time, and turned into packets and baselines."""
