"""The figures of a report: pure functions from numbers to pictures, each with its data, its alt text and a caption."""
