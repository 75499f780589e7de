"""The processes of the benchmark, each in the terms of `bench.children.command_loop`."""
