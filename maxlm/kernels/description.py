"""What attention computes, whichever kernel computes it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class AttentionDescription:
    """The scores of a query and a key, and which keys a query sees.

    score = cap(scale * query . key) + ALiBi + segment bias, then softmax over the seen keys.

    Attributes:
      causal: keys after the query in the row are not seen.
      window: only keys less than this many places away are seen (a causal query sees itself and
        window - 1 keys before it); None for all.
      logit_cap: cap(s) = logit_cap * tanh(s / logit_cap); None for none (arXiv:2408.00118).
      segment_bias: added to the score of a key in another document of the row, finite; None: keys
        of other documents are not seen.
      alibi: adds -slope * |query place - key place|, slope 2^(-8 h / H) for head h of H, from 1
        (arXiv:2108.12409, for other H than powers of two as its authors' code does).
      scale: None for 1 / sqrt(head width).
    """

    causal: bool = True
    window: int | None = None
    logit_cap: float | None = None
    segment_bias: float | None = None
    alibi: bool = False
    scale: float | None = None

    def scale_of(self, head_dim: int) -> float:
        return head_dim**-0.5 if self.scale is None else self.scale


@dataclasses.dataclass(frozen=True)
class AttentionInputs:
    """What a kernel is asked to compute with: tokens of a row, heads, dtype ("bfloat16"), platform.
    """

    length: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    dtype: str
    platform: str


def alibi_slopes(num_heads: int) -> list[float]:
    """Slope of each head, see `AttentionDescription.alibi`."""
    power = 1 << (num_heads.bit_length() - 1)  # the largest power of two up to num_heads
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    if power < num_heads:  # every other slope of twice as many heads
        slopes += [2 ** (-8 * (i + 1) / (2 * power)) for i in range(0, 2 * power, 2)]
    return slopes[:num_heads]
