# pyright: reportMissingImports=false
"""accelerated_scan.triton.scan: a Triton kernel, with its own gradient."""

from accelerated_scan.triton import scan

from refssm.conformance.subjects.accelerated_scan_lengths import scan_of_powers_of_two

linear_scan = scan_of_powers_of_two(scan)
