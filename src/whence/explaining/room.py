"""The memory of a run: forecast before it begins, and its batches chosen so that it fits.

A run that fits in no batches is refused, and the refusal says what would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from whence.core.errors import TooLarge, WhenceError
from whence.core.passage import Passage, first_tokens
from whence.core.registry import Needs, find_method
from whence.core.request import Request, Wish
from whence.core.sizes import human
from whence.explaining.forecast import declared_passes, masks_of
from whence.explaining.inside import outputs_at_once
from whence.explaining.job import Job, Room, job_of
from whence.games.game import ROWS_AT_ONCE, rows_at_once
from whence.games.removals import EMBEDDED
from whence.games.scoring import ALL_MASKS
from whence.models.model import Model
from whence.trace.footprint import Run
from whence.trace.forecast import (
    as_forecast,
    at_most,
    forecast_run,
    forward_bytes,
    rough_forecast,
    why_rough,
)
from whence.trace.memory import (
    AS_IT_COMES,
    HELD,
    Forecast,
    Heap,
    as_bytes,
    can_be_held,
    give_back_at_once,
    give_back_now,
)

SHORTENS = "delete"  # the removal after which a text has fewer tokens
ANY_REMOVAL = (SHORTENS, *EMBEDDED)  # where it is not known which
# methods of four kinds: a refusal says which of them would fit
EXAMPLES = ("occlusion", "rollout", "gradient-l2", "attention-mean")
# Bytes, as measured with 50 to 1,000 units: of a regression on sampled masks, for each mask and
# unit (45 to 52); of a surrogate's fit (510 to 690); of what is laid out for each mask and token;
# and of a mask in the game's memory, beside its bits.
FITTING = ("auto", "surrogate")
PER_SAMPLE = 50
PER_FITTED = 600
PER_ROW = 3
PER_MASK = 250
PER_OUTPUT = 17  # of each mask: a value, whether it is known, and a label


def room_for(job: Job, passages: Sequence[Passage], added: int = 0) -> Room:
    """How much may go through the model at once; a run that fits in no way is refused.

    None of the passages is run for it. Where the budget is above all that a model of this size
    could hold, nothing at all is. ``added`` are attributions from elsewhere that are judged too.
    """
    if not passages:
        return Room()
    longest = max(passages, key=len)
    budget = as_bytes(job.request.memory)
    if _is_far(job, passages, budget):
        return Room()

    give_back_at_once()  # before the rehearsals, or the holes that they leave are filled first
    room = _largest_room(job, longest, budget, added)
    if room is None:
        raise _refused(job, longest, budget)
    give_back_now()
    return room


def _is_far(job: Job, passages: Sequence[Passage], budget: int) -> bool:
    """Whether the budget is above all that a model of this size could hold."""
    longest = max(passages, key=len)
    asks = _asks_at_once(job, longest, Room())
    bound = at_most(job.model, longest, _batched_tokens(job, passages, asks), max(1, asks))
    units = max(len(passage.unit_spans) for passage in passages)
    return bound is not None and bound + _of_sampling(job, units) <= budget


def _batched_tokens(job: Job, passages: Sequence[Passage], asks: int) -> int:
    """The tokens of the largest batch; a written text has no other beside it in a trace."""
    usual, longest = Room(), max(map(len, passages))
    if passages[0].written is None:
        return usual.trace_tokens
    sizes = [longest]
    if job.needs & Needs.ATTENTION_GRADIENTS:  # maps for each ask
        sizes.append(longest * asks)
    if job.needs & Needs.RERUNS:
        sizes.append(usual.rerun_tokens)
    if job.playing or job.request.evidence:
        sizes.append(usual.game_tokens)
    return max(sizes)


def forecast_memory(
    job: Job, passage: Passage, room: Room | None = None, heap: Heap = HELD
) -> Forecast:
    """The most that a job holds on one passage: inside the model, or playing."""
    room = room or Room()
    asks = _asks_at_once(job, passage, room)
    inside = forecast_inside(job, passage, 1, room.rerun_tokens, heap, asks)
    outside = forecast_outside(job, passage, room.game_tokens, heap=heap)
    larger = max(inside, outside, key=lambda forecast: forecast.total)
    is_known = inside.is_known and outside.is_known
    rough = inside.rough or outside.rough
    return replace(larger, what=_what(job, passage), is_known=is_known, rough=rough)


def forecast_process(job: Job, passage: Passage) -> Forecast:
    """What the process will take: more than the job holds, where the C library is left alone."""
    is_left_alone = can_be_held() and _is_far(job, [passage], as_bytes(job.request.memory))
    return forecast_memory(job, passage, heap=AS_IT_COMES if is_left_alone else HELD)


def forecast_request(
    model: Model, passage: Passage, request: Request, worth_knowing: int
) -> Forecast:
    """The same for a request; roughly where it is far below what is worth knowing."""
    job = job_of(model, request)
    rough = rough_forecast(model, passage, job.needs)
    if rough.is_known and 2 * rough.total < worth_knowing:
        return replace(rough, what=_what(job, passage))
    return forecast_process(job, passage)


def _asks_at_once(job: Job, passage: Passage, room: Room) -> int:
    """Outputs of a written text that share a trace; none where they are one target together."""
    if passage.written is None:
        return 1
    targets = job.request.targets
    if any(target.at is None or target.until is not None for target in targets):
        return 0
    return min(len(targets), outputs_at_once(passage, job.needs, room))


def forecast_inside(
    job: Job,
    passage: Passage,
    rows: int,
    rerun_tokens: int,
    heap: Heap = HELD,
    asks: int = 1,
) -> Forecast:
    """What the trace holds, and the methods that read it; ``asks`` are those of a written text."""
    if not job.looking:
        return Forecast(0, 0)
    rehearsed = []
    declared = 0
    for call in job.looking:
        if hasattr(call.settings, "holds"):
            declared = max(declared, call.settings.holds(job.model, passage))
        else:
            rehearsed.append(call.settings)
    run = Run(job.needs, job.request.attention_via, tuple(rehearsed), asks=asks)
    traced = forecast_run(job.model, passage, run, rows=rows, rerun_tokens=rerun_tokens, heap=heap)
    return replace(traced, working=max(traced.working, declared))


def forecast_outside(
    job: Job, passage: Passage, game_tokens: int, added: int = 0, heap: Heap = HELD
) -> Forecast:
    """What games hold: a batch of rows, their masks, and the arithmetic on what came of them."""
    if not job.playing and not job.request.evidence:
        return Forecast(0, 0)
    games = [forecast_games(job.model, passage, 1, game_tokens, (), heap)]
    for removal, masks in masks_of(job, passage, added).items():
        games.append(forecast_games(job.model, passage, masks, game_tokens, (removal,), heap))
    if any(declared_passes(call, 1) is None for call in job.playing):
        # one that does not tell fills a batch, as far as anyone knows
        in_a_batch = game_tokens // len(passage) + 1
        games.append(forecast_games(job.model, passage, in_a_batch, game_tokens, ANY_REMOVAL, heap))
    # held beside no batch, on the values of all masks
    arithmetic = as_forecast(0, _of_sampling(job, len(passage.unit_spans))).total
    # games are played one after the other, and all of them remember
    working = max(arithmetic, *(each.working for each in games))
    kept = sum(each.kept for each in games)
    return Forecast(kept, working, rough=games[0].rough)


def forecast_games(
    model: Model,
    passage: Passage,
    masks: int,
    game_tokens: int,
    removals: Collection[str],
    heap: Heap = HELD,
) -> Forecast:
    """What so many masks of a passage hold, in batches of so many tokens.

    Where a removal shortens the text, a batch may have more rows than whole texts would fit.
    """
    tokens, units = len(passage), len(passage.unit_spans)
    allowed = rows_at_once(model, passage) if model.shares_batches else 1
    at_once = min(allowed, max(1, game_tokens // tokens))
    most = max(1, masks)  # the whole text runs when a game begins
    embedded = any(removal in EMBEDDED for removal in removals)
    heap = replace(heap, taken=heap.in_games)
    batch = forward_bytes(model, passage, min(at_once, most), embedded=embedded, heap=heap)
    if SHORTENS in removals and at_once < min(allowed, most):
        shorter = min(tokens, game_tokens // (at_once + 1))
        batch = max(batch, forward_bytes(model, passage, at_once + 1, shorter, embedded, heap))
    batch += PER_ROW * min(masks, ROWS_AT_ONCE) * tokens
    remembered = masks * (units // 8 + PER_MASK + PER_OUTPUT * passage.outputs)
    return replace(as_forecast(remembered, batch), rough=why_rough(model, passage))


def room_for_games(
    model: Model,
    passages: Sequence[Passage],
    memory: str | int | float | None,
    what: str,
    removals: Collection[str],
    masks: int | None = None,
) -> int:
    """How many tokens of a game's rows may go through the model at once.

    A text of which not even one row fits is refused before any of it runs. ``masks`` is None where
    it is the caller who will say how many there are, and holds them.
    """
    usual, budget = Room(), as_bytes(memory)
    longest = max(passages, key=len)
    in_a_batch = usual.game_tokens // len(longest) + 1
    count = in_a_batch if masks is None else masks
    bound = at_most(model, longest, usual.game_tokens)
    if bound is not None and bound + count * (len(longest) + PER_MASK) <= budget:
        return usual.game_tokens

    give_back_at_once()

    def needed(passage: Passage, batch: int) -> Forecast:
        return forecast_games(model, passage, count, batch, removals)

    tokens = _largest(
        usual.game_tokens, len(longest), lambda batch: needed(longest, batch).total <= budget
    )
    if tokens is not None:
        give_back_now()
        return tokens
    least = needed(longest, len(longest))
    least = replace(least, what=f"the passes of {what} over {len(longest):,} tokens")
    options = _shorter_that_fits(longest, budget, lambda part: needed(part, len(part)).total)
    options.append(_larger_budget(least))
    raise TooLarge(f"{least}, and the budget is {human(budget)}. Options: {'; '.join(options)}.")


def _of_sampling(job: Job, units: int) -> int:
    """The arithmetic of the method that draws most: a surrogate is the larger part of it."""
    most = 0
    for call in job.playing:
        declared = declared_passes(call, units)
        if declared is None:
            continue
        may_fit = getattr(call.settings, "estimator", "plain") in FITTING
        draws_all = declared.pool == ALL_MASKS
        each = PER_FITTED if may_fit and not draws_all else PER_SAMPLE
        most = max(most, each * declared.forwards * units)
    return most


def _largest_room(job: Job, longest: Passage, budget: int, added: int) -> Room | None:
    """The largest batches that fit; None where none does."""
    usual, tokens = Room(), len(longest)
    most_asks = _asks_at_once(job, longest, usual)
    one = min(1, most_asks)

    def fits_in_reruns(batch: int) -> bool:
        return forecast_inside(job, longest, 1, batch, asks=one).total <= budget

    def fits_in_games(batch: int) -> bool:
        return forecast_outside(job, longest, batch, added).total <= budget

    def all_fit_at_once() -> bool:
        usual_reruns = usual.rerun_tokens
        return forecast_inside(job, longest, 1, usual_reruns, asks=most_asks).total <= budget

    if longest.written is not None and all_fit_at_once():
        reruns = usual.rerun_tokens
    else:
        reruns = _largest(usual.rerun_tokens, tokens, fits_in_reruns)
    games = _largest(usual.game_tokens, tokens, fits_in_games)
    if reruns is None or games is None:
        return None

    if longest.written is not None:  # such a text has no other beside it
        outputs = _largest(
            most_asks,
            one,
            lambda asks: forecast_inside(job, longest, 1, reruns, asks=asks).total <= budget,
        )
        return Room(tokens, reruns, games, outputs or 1)

    def fits_in_traces(batch: int) -> bool:
        rows = max(1, batch // tokens)
        return forecast_inside(job, longest, rows, reruns).total <= budget

    traces = _largest(usual.trace_tokens, tokens, fits_in_traces)
    return Room(traces or tokens, reruns, games)


def _smallest(passage: Passage) -> Room:
    """One text, or one output of it, at a time."""
    tokens = len(passage)
    return Room(tokens, tokens, tokens, outputs=1)


def _largest(usual: int, smallest: int, fits: Callable[[int], bool]) -> int | None:
    """The usual size of a batch, or the first half, quarter … of it that fits."""
    size = usual
    while not fits(size):
        if size <= smallest:
            return None
        size = max(smallest, size // 2)
    return size


def _what(job: Job, passage: Passage) -> str:
    calls = [call.name for call in (*job.looking, *job.playing)]
    methods = " and ".join(calls) if len(calls) < 3 else f"{len(calls)} methods"
    if job.request.evidence:
        methods += ", with evidence,"
    return f"the passes of {methods} over {len(passage):,} tokens"


def _refused(job: Job, longest: Passage, budget: int) -> TooLarge:
    """What is needed, what there is, and what would fit."""
    usual = forecast_memory(job, longest)
    least = forecast_memory(job, longest, _smallest(longest))
    words = f"{usual}, and the budget is {human(budget)}."
    if least.total < usual.total:
        words += f" In the smallest batches it would still be {human(least.total)}."

    def needed(part: Passage) -> int:
        return forecast_memory(job, part, _smallest(part)).total

    options = [*_that_fit(job, longest, budget), *_shorter_that_fits(longest, budget, needed)]
    options.append(_larger_budget(least))
    return TooLarge(f"{words} Options: {'; '.join(options)}.")


def _that_fit(job: Job, longest: Passage, budget: int) -> list[str]:
    """Other methods, or the same without evidence, as far as they fit."""
    options = []
    smallest = _smallest(longest)
    if job.request.evidence:
        without = replace(job, request=replace(job.request, evidence=False))
        if forecast_memory(without, longest, smallest).total <= budget:
            options.append("evidence=False (--no-evidence)")
    fitting = []
    asked = {wish.method for wish in job.request.wishes}
    for name in EXAMPLES:
        if name in asked:
            continue
        request = replace(job.request, wishes=(Wish(find_method(name).name),))
        forecast = forecast_memory(job_of(job.model, request), longest, smallest)
        if forecast.total <= budget:
            fitting.append(f"{name} (about {human(forecast.total)})")
    if fitting:
        options.append(f"other methods that fit: {', '.join(fitting)}")
    return options


def _shorter_that_fits(
    longest: Passage, budget: int, needed: Callable[[Passage], int]
) -> list[str]:
    """The longest beginning of the text that fits, by halving."""
    fits, too_long = 0, len(longest)
    while too_long - fits > max(1, too_long // 20):
        middle = (fits + too_long) // 2
        try:
            is_enough = needed(first_tokens(longest, middle)) <= budget
        except WhenceError:
            is_enough = False
        fits, too_long = (middle, too_long) if is_enough else (fits, middle)
    if fits < 1:
        return []
    return [f"a text of at most about {fits:,} tokens (or overflow='truncate', 'window')"]


def _larger_budget(least: Forecast) -> str:
    return f"a larger budget, memory='{human(least.total)}' or more"
