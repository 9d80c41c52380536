"""An order of pieces of work in which workers that they are dealt to have about equal shares."""

from collections.abc import Sequence


def balanced_order(sizes: Sequence[int], workers: int) -> list[int]:
    """Numbers of pieces such that the first, the first + `workers` and so on are of about the size
    of the second, the second + `workers` and so on: Beam's local runner deals pieces like that
    before they are begun, and who is done first waits. Where work is handed out as it is done, the
    largest pieces come first, which is right there too.

    By the rule of the longest processing time (R. L. Graham, Bounds on multiprocessing timing
    anomalies, 1969), with equal numbers of pieces for all workers as far as they go.

    Args:
      sizes: cost of each piece, in any unit.
      workers: at least 1.

    Returns:
      Each of 0 .. len(sizes) - 1 once.
    """
    hands: list[list[int]] = [[] for _ in range(workers)]
    full, longer = divmod(len(sizes), workers)
    loads = [0] * workers
    for piece in sorted(range(len(sizes)), key=lambda piece: (-sizes[piece], piece)):
        # Hands with one piece more must come first in the deal.
        free = [hand for hand in range(workers) if len(hands[hand]) < full + (hand < longer)]
        hand = min(free, key=lambda hand: (loads[hand], hand))
        hands[hand].append(piece)
        loads[hand] += sizes[piece]
    return [hands[number % workers][number // workers] for number in range(len(sizes))]
