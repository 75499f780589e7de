"""The versions of the tools that the tests use."""

HELM = {3: "v3.22.0", 4: "v4.3.1"}
"""By major version, as in gomod/go.mod. A newer one of the same major version on the PATH will do."""

PROMTOOL = "2.42.0"
"""The oldest that will do: Debian 12 has it."""

CHROMIUM = "120.0.0"
"""The oldest that will do."""
