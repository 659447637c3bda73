"""Pictures and documents."""

from tests.matrix.case import base64, image_url, requests, text, user

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG_URL = f"data:image/png;base64,{PNG}"
PDF = "JVBERi0xLjQKJSVFT0YK"

CASES = (
    requests(
        "image-url-pitfall-33",
        {
            "chat": {
                "messages": [user([text("What is it?"), image_url("https://images.example/a.png")])],
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    user(
                        [
                            {"type": "image", "source": {"type": "url", "url": "https://images.example/a.png"}},
                            text("What is it?"),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
        },
        {
            "messages": {
                "messages": [
                    user(
                        [
                            text("What is it?"),
                            {"type": "image", "source": {"type": "url", "url": "https://images.example/a.png"}},
                        ]
                    )
                ],
                "max_tokens": 64,
            },
            "chat": {
                "messages": [user([image_url("https://images.example/a.png"), text("What is it?")])],
                "max_tokens": 64,
            },
        },
    ),
    requests(
        "image-base64-pitfall-33",
        {
            "chat": {
                "messages": [user([image_url(f"data:image/png;base64,{PNG}", detail="low"), text("What is it?")])],
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    user(
                        [
                            {
                                "type": "image",
                                "source": base64("image/png", PNG),
                                "cache_control": {"type": "ephemeral", "ttl": "1h"},
                            },
                            text("What is it?"),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
        },
        {
            "messages": {
                "messages": [user([{"type": "image", "source": base64("image/png", PNG)}, text("What is it?")])],
                "max_tokens": 64,
            },
            "chat": {"messages": [user([image_url(PNG_URL), text("What is it?")])], "max_tokens": 64},
        },
        {
            "messages": ("$.messages[0].content[0] detail dropped (the dialect has no such wish)",),
            "chat": ("$.messages[0].content[0] cache dropped (the server decides what it caches)",),
        },
    ),
    requests(
        "documents",
        {
            "chat": {
                "messages": [
                    user(
                        [
                            {
                                "type": "file",
                                "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                            },
                            text("Sum it up."),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
            "messages": {
                "messages": [
                    user(
                        [
                            {"type": "document", "source": base64("application/pdf", PDF), "title": "a.pdf"},
                            {
                                "type": "document",
                                "source": {"type": "text", "media_type": "text/plain", "data": "Plain words."},
                                "context": "a note",
                                "citations": {"enabled": True},
                            },
                            text("Sum it up."),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
        },
        {
            "messages": {
                "messages": [
                    user(
                        [
                            {"type": "document", "source": base64("application/pdf", PDF), "title": "a.pdf"},
                            text("Sum it up."),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
            "chat": {
                "messages": [
                    user(
                        [
                            {
                                "type": "file",
                                "file": {
                                    "file_data": "data:application/pdf;base64,JVBERi0xLjQKJSVFT0YK",
                                    "filename": "a.pdf",
                                },
                            },
                            text("Plain words."),
                            text("Sum it up."),
                        ]
                    )
                ],
                "max_tokens": 64,
            },
        },
        {
            "chat": (
                "$.messages[0].content[1] context dropped (a file has no such field)",
                "$.messages[0].content[1] citable dropped (a file has no such field)",
                "$.messages[0].content[1] file approximated (written as its text)",
            )
        },
    ),
    requests(
        "audio",
        {
            "chat": {
                "messages": [
                    user(
                        [
                            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                            text("What is said?"),
                        ]
                    )
                ],
                "max_tokens": 64,
            }
        },
        {"messages": {"messages": [user("What is said?")], "max_tokens": 64}},
        {"messages": ("$.messages[0].content[0] audio dropped (the dialect takes and gives no sound)",)},
    ),
)
