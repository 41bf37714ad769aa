"""What an evaluation says, as tables, figures and a page; no arm without its cost."""
