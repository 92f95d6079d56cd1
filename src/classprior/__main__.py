"""Run the command line: python -m classprior."""

from classprior.cli import main

if __name__ == "__main__":
    main(prog_name="classprior")
