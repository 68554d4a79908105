times = Domain(
    summary="times since an impulse: 0, and 1e-4 to 1e2",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: logarithmic(1e-2, 10, a) + 0j,
        "wide": lambda a, b: np.where(a < 0.1, 0, logarithmic(1e-4, 1e2, a)) + 0j,
    },
    tame=("one", "near"),
    kind="real",
)
