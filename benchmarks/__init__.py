"""Development tools: what co-cli costs and how good it is. Not part of the wheel; run `python -m benchmarks --help`."""
