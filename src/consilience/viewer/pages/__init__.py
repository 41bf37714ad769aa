"""The pages: each is made from files of the project by one function."""
