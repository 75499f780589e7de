"""Why a gang or a pod group waits, as data and text. Pure; for the command line and the status page."""
