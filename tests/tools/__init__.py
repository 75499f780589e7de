"""The programs that the chart's tests drive: Helm 3, Helm 4 and promtool; found or made."""
