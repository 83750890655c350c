"""`python -m kace` is the command line."""

from kace.cli import main

main()
