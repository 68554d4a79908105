"""Groups of operators in which bugs of selective scans are planted."""

SCAN, STATEFUL, PACKED, STEP = (
    (f"selective_{form}", f"mamba_{form}")
    for form in ("scan", "scan_stateful", "scan_packed", "step")
)
LONG = (*SCAN, *STATEFUL, *PACKED)
EACH = (*LONG, *STEP)
GATED = tuple(name for name in EACH if name.startswith("mamba"))
ONE, OTHER = GATED[::2], GATED[1::2]  # scan and packed; stateful and step
STEPPED = ("selective_scan", "selective_step", "mamba_scan_stateful")  # for what all may have
PIECES = tuple(
    f"{name}_{form}"
    for name in ("selective_scan", "mamba_scan")
    for form in ("packed_stateful", "states", "reversed")
)
GATED_PIECES = PIECES[3:]
