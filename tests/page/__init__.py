"""The status page in a real Chromium, served by the code of the controller."""
