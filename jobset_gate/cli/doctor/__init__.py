"""The checks of `doctor`, one file for each subject: functions from a ClusterReader to findings. For cli.commands."""
