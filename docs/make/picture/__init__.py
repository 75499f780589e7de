"""Plays the demo in a terminal of fixed size and writes what it showed as a picture that moves: `make picture`."""
