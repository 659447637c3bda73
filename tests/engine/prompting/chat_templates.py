"""Chat templates as far as anybody looks into them."""

from xenoglot.engine.server.model_traits import ChatTemplate

CHATML = ChatTemplate(text="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}")
HERMES = ChatTemplate(
    text='{{ tools }} <tool_call>\n{"name": "{{ c.name }}", "arguments": {{ c.arguments }}}\n</tool_call>', tools=True
)
MISTRAL = ChatTemplate(text='[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS][TOOL_CALLS][{"name": "', tools=True)
UNHEARD = ChatTemplate(text="{{ tools }} CALL({{ c.name }})", tools=True)
MUSING = ChatTemplate(
    text="{% if enable_thinking %}<think>{% else %}</think>{% endif %}",
    ends={None: "<|im_start|>assistant\n", True: "<|im_start|>assistant\n<think>\n", False: "assistant\n"},
)
