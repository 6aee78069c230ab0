"""What is said of a score's sign, by the reading of the target.

A score above zero says that a unit raises the number that is explained. What that means depends on
the number: of a probability the unit speaks for the target; of a loss it speaks against it; of an
entropy it makes the model less sure. Which is which stands in ``core/target.py``; the words for it
stand here, and every view asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from whence.core.showing import visible
from whence.core.target import SIGN_OF_SUPPORT, WHOLE_INPUT, Target


@dataclass(frozen=True)
class Side:
    """What units do whose scores are above zero, or those whose scores are below.

    ``role`` is the colour: "above" or "below" zero. ``short`` is for a heading, ``camp`` for a list
    of the methods that say so. ``one`` and ``several`` are the verb, ``object`` is what follows it,
    with the label in the place of {}, and ``again`` what follows it where that was said before.
    """

    role: str
    short: str
    camp: str
    one: str
    several: str
    object: str
    again: str
    is_of_label: bool

    def does(self, label: str, count: int = 1) -> str:
        """What units do, as the end of a sentence.

        >>> sides("logit").above.does("positive"), sides("entropy").above.does("positive", 2)
        ('speaks for positive', 'make the model less sure')
        """
        return f"{self._verb(count)} {self.object.replace('{}', label)}"

    def does_too(self, count: int = 1) -> str:
        """The same after a clause that named what it is about.

        >>> sides("logit").below.does_too(), sides("entropy").below.does_too()
        ('speaks against it', 'makes it more sure')
        """
        return f"{self._verb(count)} {self.again}"

    def end(self, label: str) -> str:
        """What the colour at this end of a legend means.

        >>> sides("cross-entropy").above.end("the target"), sides("entropy").above.end("the target")
        ('against the target', 'makes the model less sure')
        """
        return self.object.replace("{}", label) if self.is_of_label else self.does(label)

    def other_end(self) -> str:
        """The same for the end that is named second.

        >>> sides("logit").below.other_end(), sides("entropy").below.other_end()
        ('against it', 'makes it more sure')
        """
        return self.again if self.is_of_label else self.does_too()

    def _verb(self, count: int) -> str:
        return self.one if count == 1 else self.several


@dataclass(frozen=True)
class Sides:
    """What is said of scores above zero, and of those below.

    ``matter`` is what units matter for whose scores have no sign, with the label in the place of
    {}. ``sign_of_support`` is that of the reading.
    """

    above: Side
    below: Side
    matter: str
    sign_of_support: int

    @property
    def in_order(self) -> tuple[Side, Side]:
        """The side that is said first: what speaks for the target, or what raises the number."""
        if self.sign_of_support < 0:
            return self.below, self.above
        return self.above, self.below

    def what_matters_for(self, label: str) -> str:
        """What units matter for whose scores have no sign.

        >>> sides("logit").what_matters_for("good"), sides("entropy").what_matters_for("good")
        ('good', 'how sure the model is')
        """
        return self.matter.replace("{}", label)

    def camps(self, kind: str) -> tuple[str, str]:
        """What the two sides of a conflict say of a unit, as the end of "it is …".

        >>> sides("entropy").camps("sign"), sides("entropy").camps("size")
        (('raising it', 'lowering it'), ('strong', 'weak'))
        """
        if kind == "size":
            return "strong", "weak"
        one, other = self.in_order
        return one.camp, other.camp

    def question(self, label: str) -> str:
        """What was asked of a text, in a few words.

        >>> sides("perplexity").question("good"), sides("entropy").question("good")
        ('what speaks for good', 'what makes the model less sure')
        """
        return f"what {self.in_order[0].does(label)}"

    @property
    def told_apart(self) -> str:
        """What methods with signs tell apart, after "they tell …".

        >>> sides("perplexity").told_apart, sides("entropy").told_apart
        ('for from against', 'less sure from more sure')
        """
        one, other = self.in_order
        return f"{one.short} from {other.short}"

    @property
    def heading(self) -> str:
        """What plus and minus mean, in a few words.

        >>> sides("logit").heading, sides("perplexity").heading
        ('for +, against −', 'against +, for −')
        """
        return f"{self.above.short} +, {self.below.short} −"

    @property
    def key(self) -> str:
        """What plus and minus mean, in a line where there are no colours.

        >>> sides("logit").key, sides("entropy").key
        ('+ for, − against', '+ less sure, − more sure')
        """
        return f"+ {self.above.short}, − {self.below.short}"


def sides_of(target: Target) -> Sides:
    """What is said of the signs of scores about this target.

    >>> sides_of(Target("good", read="kl")).below.does("good")
    'keeps the model at what it says of the whole input'
    """
    if target.reference is None:
        return sides(target.read)
    return sides(target.read, target.reference.name)


def sides(read: str, reference: str = WHOLE_INPUT) -> Sides:
    """What is said of the signs of scores of a reading.

    ``reference`` is the input from which a divergence is measured. Of a reading that is not known,
    as of a run that is empty, it is said what is said of a score.

    Said of an entropy: what units matter for without a sign.
    """
    sign = next((sign for name, sign in SIGN_OF_SUPPORT.items() if name == read), 1)
    if read == "entropy":
        return Sides(LESS_SURE, MORE_SURE, "how sure the model is", sign)
    if read == "kl":
        return _of_divergence(f"what it says of {visible(reference)}")
    above, below = ("for", "against") if sign > 0 else ("against", "for")
    return Sides(_of_label("above", above), _of_label("below", below), "{}", sign)


def _of_label(role: str, word: str) -> Side:
    return Side(
        role=role,
        short=word,
        camp=word,
        one="speaks",
        several="speak",
        object=f"{word} {{}}",
        again=f"{word} it",
        is_of_label=True,
    )


# Said of units that raise an entropy.
LESS_SURE = Side(
    role="above",
    short="less sure",
    camp="raising it",
    one="makes",
    several="make",
    object="the model less sure",
    again="it less sure",
    is_of_label=False,
)
# Said of units that lower an entropy.
MORE_SURE = Side(
    role="below",
    short="more sure",
    camp="lowering it",
    one="makes",
    several="make",
    object="the model more sure",
    again="it more sure",
    is_of_label=False,
)


def _of_divergence(there: str) -> Sides:
    """``there`` is what the model says of the input from which the divergence is measured.

    Said of a divergence: what units do that raise it, and those that lower it.
    """
    away = Side(
        role="above",
        short="farther",
        camp="raising it",
        one="moves",
        several="move",
        object=f"the model away from {there}",
        again="it away from that",
        is_of_label=False,
    )
    near = Side(
        role="below",
        short="nearer",
        camp="lowering it",
        one="keeps",
        several="keep",
        object=f"the model at {there}",
        again="it at that",
        is_of_label=False,
    )
    return Sides(away, near, f"how far the model is from {there}", 0)
