"""`python -m refssm` is the command `refssm`."""

from refssm.command import main

if __name__ == "__main__":
    main()
