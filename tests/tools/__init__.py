"""The programs that the tests drive: Helm 3 and 4, promtool, both kinds of busybox, Chromium; found or made."""
