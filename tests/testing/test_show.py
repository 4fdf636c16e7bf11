from statecast.testing.show import WIDTH, describe, short

ID = "0f0e0d0c-1111-4222-8333-444455556666"


def test_pieces_of_one_message_are_one_line():
    payloads = [
        {"type": "TEXT_MESSAGE_START", "messageId": ID, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": ID, "delta": word} for word in ("Hello", " ", "there")),
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "other", "delta": "!"},
        {"type": "TEXT_MESSAGE_END", "messageId": ID},
    ]
    assert describe(payloads).splitlines() == [
        "events (6):",
        "    0 TEXT_MESSAGE_START messageId=0f0e0d0c… role=assistant",
        '    1 TEXT_MESSAGE_CONTENT ×3 (11 characters) "Hello there" messageId=0f0e0d0c…',
        '    4 TEXT_MESSAGE_CONTENT "!" messageId=other',
        "    5 TEXT_MESSAGE_END messageId=0f0e0d0c…",
    ]


def test_patches_are_shown_as_operations():
    delta = [{"op": "add", "path": "/stops/0", "value": {"name": "x"}}, {"op": "remove", "path": "/city"}]
    assert describe([{"type": "STATE_DELTA", "delta": delta}]).endswith(
        'STATE_DELTA delta=[add /stops/0 {"name": "x"}, remove /city]'
    )


def test_long_lists_lose_their_middle_and_long_values_their_end():
    payloads = [{"type": "CUSTOM", "name": str(number), "value": "x" * 1000} for number in range(1000)]
    lines = describe(payloads).splitlines()
    assert len(lines) < 60
    assert "name=0" in lines[1]
    assert "name=999" in lines[-1]
    assert max(map(len, lines)) <= WIDTH


def test_nothing_and_nonsense_are_shown_too():
    assert describe([]) == "no event was sent"
    assert "None" in describe([{"no": "type"}])
    assert "TEXT_MESSAGE_CONTENT" in describe([{"type": "TEXT_MESSAGE_CONTENT", "delta": 5}, {"type": 3}])
    assert len(short({"a": "x" * 500}, 40)) == 40
