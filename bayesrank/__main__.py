"""Run the command line: ``python -m bayesrank``."""

from bayesrank.commands.cli import main

if __name__ == "__main__":
    main(prog_name="bayesrank")
