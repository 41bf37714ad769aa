"""The durable record of every call: append-only, hash-chained, and what is derived from it."""
