"""What Events say of a gang: anybody who may write Events of its namespace may have said it."""

from jobset_gate.barrier.events import CoreEvent, InvolvedObject, denials_by_job


def test_words_of_an_event_bring_no_control_characters_with_them() -> None:
    event = CoreEvent(
        involved_object=InvolvedObject(name="train-workers-0"), message="quota\x1b[2J\n exceeded\u2066\x85 now"
    )
    assert denials_by_job([event]) == {"train-workers-0": "quota^[[2J exceeded\\u2066 now"}
