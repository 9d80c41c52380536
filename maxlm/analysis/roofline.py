"""The shortest time that a step can take on a chip: three bounds.

Compute is the matmul FLOPs at the chip's peak, memory the bytes moved at the bandwidth of the main
memory, communication the bytes of the collectives at the bandwidth of the links that they use. The
predicted step takes the longest of the three: everything overlaps and each unit reaches its peak.
A real step is slower; the figures serve to compare programs and to see what limits them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from maxlm.analysis.chips import Chip
from maxlm.analysis.collectives import Collective


@dataclasses.dataclass(frozen=True)
class Roofline:
    """Seconds of a step on one device."""

    compute: float
    memory: float
    communication: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory, self.communication)

    @property
    def bound(self) -> str:
        times = dataclasses.asdict(self)
        return max(times, key=times.__getitem__)


def roofline(chip: Chip, matmul_flops: Mapping[str, float], bytes_moved: float,
             collectives: Sequence[Collective], devices: Sequence[Any]) -> Roofline:
    """The bounds of one device.

    Args:
      matmul_flops: precision -> FLOPs.
      devices: those of the mesh, in its order.
    """
    widths = torus(devices) if chip.kind == "tpu" else []
    return Roofline(
        compute=sum(flops / chip.rate(precision) for precision, flops in matmul_flops.items()),
        memory=bytes_moved / chip.memory_bandwidth,
        communication=sum(c.total / bandwidth(chip, [devices[n] for n in c.group], widths)
                          for c in collectives if c.total))


def torus(devices: Sequence[Any]) -> list[int]:
    """Size of each dimension of the chips' torus."""
    return [max(places) + 1 for places in zip(*(d.coords for d in devices), strict=True)]


def bandwidth(chip: Chip, group: Sequence[Any], widths: Sequence[int]) -> float:
    """Bytes/s that one device can send in a collective of these devices.

    TPU: a group that spans a dimension of the torus uses both directions of its ring, or one where
    the ends are not connected, at the speed of a link; several dimensions are used together. GPU:
    NVLink inside a host, the network adapter between hosts.
    """
    if chip.kind == "gpu":
        return chip.network if len({device.process_index for device in group}) > 1 else chip.link
    links = 0
    for dimension, ring in enumerate(chip.rings(widths)):
        if len({device.coords[dimension] for device in group}) > 1:
            links += 2 if ring else 1
    return chip.link * max(links, 1)  # cores of one chip: at least as fast as a link
