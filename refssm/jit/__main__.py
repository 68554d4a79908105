"""`python -m refssm.jit` compiles every mirror for this machine, on all its cores."""

from refssm.jit._compiling.everything import main

if __name__ == "__main__":
    main()
