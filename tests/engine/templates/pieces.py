"""Chat templates as far as anybody looks into them."""

from xenoglot.engine.server.model_traits import Template

CHATML = Template(text="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}")
HERMES = Template(
    text='{{ tools }} <tool_call>\n{"name": "{{ c.name }}", "arguments": {{ c.arguments }}}\n</tool_call>', tools=True
)
MISTRAL = Template(text='[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS][TOOL_CALLS][{"name": "', tools=True)
UNHEARD = Template(text="{{ tools }} CALL({{ c.name }})", tools=True)
MUSING = Template(
    text="{% if enable_thinking %}<think>{% else %}</think>{% endif %}",
    ends={None: "<|im_start|>assistant\n", True: "<|im_start|>assistant\n<think>\n", False: "assistant\n"},
)
