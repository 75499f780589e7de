"""What `doctor` looks at, one file for each thing; every check is a small function that gives its findings."""
