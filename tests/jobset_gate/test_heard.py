"""What Events say of a gang: anybody who may write Events of its namespace may have said it."""

from jobset_gate.heard import Event, Regarding, refusals


def test_words_of_an_event_bring_no_control_characters_with_them() -> None:
    event = Event(involved_object=Regarding(name="train-workers-0"), message="quota\x1b[2J\n exceeded\u2066\x85 now")
    assert refusals([event]) == {"train-workers-0": "quota^[[2J exceeded\\u2066 now"}
