"""What a release consists of; another build of the same commit gives the same bytes (`python -m release`)."""
