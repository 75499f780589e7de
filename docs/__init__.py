"""The documents; `docs.make` writes those of them that follow from the code."""
