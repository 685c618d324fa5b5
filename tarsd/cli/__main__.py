"""`python -m tarsd.cli` is the command `tarsd`: what a service starts, whose path may be long or hold blanks."""

from tarsd.cli import main

if __name__ == "__main__":
    main()
