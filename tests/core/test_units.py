"""Names of units that repeat are told apart."""

from hypothesis import given
from hypothesis import strategies as st

from whence.core.units import Units, distinct

NAMES = st.lists(st.sampled_from(["a", "b", "a (2)", "a (3)", "a (2) (2)", ""]), max_size=12)


@given(NAMES)
def test_no_two_are_alike(names):
    assert len(set(distinct(names))) == len(names)


@given(NAMES)
def test_a_name_that_stands_for_the_first_time_is_left_as_it_is(names):
    told_apart = distinct(names)
    for place, name in enumerate(names):
        is_new = name not in names[:place]
        assert (told_apart[place] == name) == is_new
        assert told_apart[place].startswith(name)


def test_units_count_their_names_and_not_their_characters():
    units = Units("word", ("The ", "the ", "end ", "the"))
    assert units.distinct_names == ("The", "the", "end", "the (2)")
    assert units.names == ("The", "the", "end", "the")
