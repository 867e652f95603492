"""Pages: what a model is, a search found or a comparison showed, in one file without network."""
