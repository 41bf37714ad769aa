"""A strict double of the model vendors on loopback, for tests and demonstrations; needs the extra ``viewer``."""
