"""The timeline of a gang or pod group, as data, rows and SVG. Pure; for the command line and the status page."""
