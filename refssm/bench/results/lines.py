"""The rows of a work as a table of text: a line for each implementation."""

from collections.abc import Sequence

from refssm.bench.measuring.timing import Interval, Rates
from refssm.bench.results.rows import Row, WorkRows

HEADS = (
    *("implementation", "median", "quartiles", "rounds", "× mirror", "GB/s", "Gflop/s"),
    *("peak MB", "err/(u K0)", "bits", "rel. error"),
)
WAITED = "with Python"  # the head of a column that only works with a card have


def table(group: WorkRows, rates: Rates | None) -> list[str]:
    """A work's title and its rows."""
    rows = [heads(group)]
    rows += [cells(group, row, rates) for row in group.rows if row.timed]
    lines = [group.work.title, *(f"  {line}" for line in aligned(rows))]
    lines += [f"  {row.label}   {row.status}: {row.message}" for row in group.rows if not row.timed]
    parts = {row.accuracy_at for row in group.rows if row.accuracy_at}
    lines += [f"  accuracy on {part}" for part in sorted(parts)]
    return lines + [f"  {row.label}: {note}" for row in group.rows for note in row.notes]


def heads(group: WorkRows) -> tuple[str, ...]:
    """The heads of the columns; ratios are to the work's own base."""
    named = HEADS if group.base is None else [h.replace("mirror", group.base.label) for h in HEADS]
    return (*named, WAITED) if group.on_card else tuple(named)


def cells(group: WorkRows, row: Row, rates: Rates | None) -> tuple[str, ...]:
    """The cells of a row that has times."""
    came = group.times_base(row)
    measured = rates.of(row.device) if rates else None
    waited = "" if row.latency is None else seconds(row.latency)
    return (
        row.label,
        seconds(row.median.value),
        spread(row),
        str(len(row.seconds)),
        ("1" if came is None else times(came) if len(row.seconds) >= FEW else once(came)),
        _rate(group.work.bytes, row, measured.copy if measured else None),
        _rate(group.work.flops, row, measured.matrix(group.work.dtype) if measured else None),
        "" if row.peak is None else f"{row.peak / 1e6:.1f}",
        "" if row.ratio is None else f"{row.ratio:.2g}",
        "" if row.bits is None else f"{row.bits:.1f}",
        "" if row.relative is None else f"{row.relative:.1e}",
        *((waited,) if group.on_card else ()),
    )


FEW = 6  # rounds: the interval of fewer is not one of 95 %
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


def seconds(value: float) -> str:
    """A time with three digits."""
    unit, size = _unit(value)
    return f"{three(value / size)} {unit}"


def spread(row: Row) -> str:
    """The quartiles of a row's times, in one unit."""
    low, high = row.quartiles
    unit, size = _unit(low)
    return f"{three(low / size)} to {three(high / size)} {unit}"


def three(value: float) -> str:
    """A number with three digits and no exponent above 1000."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _unit(value: float) -> tuple[str, float]:
    return next(((unit, size) for unit, size in UNITS if value >= size), UNITS[-1])


def times(interval: Interval) -> str:
    """A ratio with its interval."""
    return f"{_digits(interval.value)}× [{_digits(interval.low)}, {_digits(interval.high)}]"


def once(interval: Interval) -> str:
    """A ratio from too few rounds for an interval."""
    return f"{_digits(interval.value)}×"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _rate(amount: float | None, row: Row, whole: float | None) -> str:
    """Amount a second in units of 10⁹, and its share of what the machine does."""
    if not amount:
        return ""
    rate = amount / row.median.value
    return f"{rate / 1e9:.3g}" + (f" ({rate / whole:.0%})" if whole else "")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines with columns; the first column is to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def head(machine: dict, rates: Rates | None) -> list[str]:
    """Machine, versions, threads and rates, above the tables."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    threads = ", ".join(f"{name} {number}" for name, number in machine["threads"].items())
    load = machine.get("load")
    lines = [
        versions,
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"
        + (f", load {load:.2f}" if load is not None else ""),
        f"threads: {threads}",
    ]
    if rates is not None:
        lines.append(
            f"copy {rates.copy / 1e9:.1f} GB/s (read and written), matrix product float32 "
            f"{rates.float32 / 1e9:.0f}, float64 {rates.float64 / 1e9:.0f} Gflop/s"
        )
    card = machine.get("card")
    return lines + (_of_card(card, rates.card if rates else None) if card else [])


def _of_card(card: dict, rates: Rates | None) -> list[str]:
    """The card, its software and its rates."""
    driver = f"driver {card['driver']}" if card["driver"] else "driver"
    lines = [
        f"{card['name']}, compute capability {card['capability']}, "
        f"{card['multiprocessors']} multiprocessors, {card['memory'] / 2**30:.0f} GiB, "
        f"{card['cache'] / 2**20:.0f} MiB of second-level cache",
        f"{driver} for CUDA {card['driver_cuda']}, runtime CUDA {card['runtime_cuda']}, "
        f"CuPy {card['cupy']}" + (", TF32 in products (CUPY_TF32=1)" if card["tf32"] else ""),
    ]
    if rates is not None:
        lines.append(
            f"on the card: copy {rates.copy / 1e9:.0f} GB/s (read and written), matrix product "
            f"float32 {rates.float32 / 1e12:.1f}, float64 {rates.float64 / 1e12:.1f} Tflop/s"
        )
    return lines
