"""A few plain sentences about many things, on which one sees what steering breaks."""

from __future__ import annotations

SENTENCES = (
    "The meeting has been moved to Thursday afternoon because the room is being painted.",
    "She planted tomatoes along the southern wall, where they get sun for most of the day.",
    "Water boils at a lower temperature in the mountains than it does at the coast.",
    "He could not remember where he had left his keys, so he walked back to the station.",
    "The committee will publish its report next spring, after the public has been heard.",
    "Most birds in this valley leave in September and come back before the snow is gone.",
    "I asked the waiter for the bill, but he had already gone home.",
    "The bridge was closed for repairs, and the traffic had to cross the river further north.",
    "Two of the three witnesses said that the car was blue; the third was not sure.",
    "After the storm the fishermen mended their nets and waited for the wind to turn.",
    "The teacher wrote the answer on the board and asked whether anyone had found another way.",
    "A good dictionary tells you not only what a word means but also how it has changed.",
)
