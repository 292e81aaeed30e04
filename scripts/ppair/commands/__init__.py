"""One module for each command; none imports another.

Each has USAGE, a docstring that --help prints, add_arguments(parser) and main(arguments), which
returns the exit code. Those with TAKES_ARRANGEMENT get what arrangement.py reads in `given`.
"""
