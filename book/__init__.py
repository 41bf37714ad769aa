"""How the documents become a book: pages made of the code, and the folder that the docs tool builds from."""
