# pyright: reportMissingImports=false
"""accelerated_scan.warp.scan: a CUDA kernel of warps, with its own gradient."""

from accelerated_scan.warp import scan

from refssm.conformance.subjects.accelerated_scan_lengths import scan_of_powers_of_two

linear_scan = scan_of_powers_of_two(scan)
