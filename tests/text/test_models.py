"""The names of real models, as hubs, runners and APIs write them, tell the family."""

from __future__ import annotations

from typing import Final

import pytest

from xenoglot.text import registry

KNOWN: Final = {
    "hermes": (
        "qwen_qwen3-8b",
        "NousResearch/Hermes-2-Pro-Llama-3-8B",
        "NousResearch/Hermes-3-Llama-3.1-70B",
        "hermes3:8b",
        "nous-hermes2-mixtral:8x7b",
        "Qwen/Qwen2.5-7B-Instruct",
        "qwen2.5:0.5b",
        "Qwen/Qwen3-8B",
        "qwen3:8b",
        "qwen/qwen3-235b-a22b:free",
        "Qwen/Qwen3-VL-8B-Instruct",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "inclusionAI/Ling-1T",
    ),
    "qwen25_coder": (
        "Qwen/Qwen2.5-Coder-32B-Instruct",
        "qwen2.5-coder:7b",
    ),
    "qwen3_thinking": (
        "Qwen/Qwen3-235B-A22B-Thinking-2507",
        "qwen3:30b-a3b-thinking-2507-q4_K_M",
        "Qwen/QwQ-32B",
        "qwq:32b",
        "Hcompany/Holo2-8B",
        "kolibri-1",
        "Qwen/Qwen3-VL-8B-Thinking",
        "Qwen/Qwen3-Next-80B-A3B-Thinking",
    ),
    "qwen3_coder": (
        "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8",
        "qwen3-coder:480b-cloud",
        "qwen/qwen3-coder-plus",
        "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        "Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
        "Qwen/Qwen3-Coder-Next",
        "qwen.qwen3-coder-480b-a35b-v1:0",
    ),
    "qwen3_5": (
        "Qwen/Qwen3.5-35B-A3B",
        "qwen3.5:9b",
        "Qwen/Qwen3.6-27B",
        "hf.co/unsloth/Qwen3.5-9B-GGUF:Q4_K_M",
    ),
    "mimo_v2": ("XiaomiMiMo/MiMo-V2-Flash",),
    "smollm": (
        "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "HuggingFaceTB/SmolLM3-3B",
        "smollm2:135m",
    ),
    "nemotron3": (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "nemotron-3-nano:30b",
    ),
    "nemotron_nano": ("nvidia/NVIDIA-Nemotron-Nano-9B-v2",),
    "nemotron": (
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
        "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
    ),
    "internlm": (
        "internlm/internlm2_5-7b-chat",
        "internlm/internlm3-8b-instruct",
        "internlm/Intern-S1",
    ),
    "jamba": (
        "ai21labs/AI21-Jamba-1.5-Mini",
        "ai21labs/AI21-Jamba-Large-1.7",
    ),
    "xlam": (
        "Salesforce/Llama-xLAM-2-8b-fc-r",
        "Salesforce/xLAM-7b-fc-r",
    ),
    "granite": (
        "ibm-granite/granite-3.3-8b-instruct",
        "granite3.3:2b",
    ),
    "granite4": (
        "ibm-granite/granite-4.0-h-tiny",
        "granite4:micro",
    ),
    "granite_fc": ("ibm-granite/granite-20b-functioncalling",),
    "phi4_mini": (
        "microsoft/Phi-4-mini-instruct",
        "phi4-mini:3.8b",
    ),
    "hunyuan": ("tencent/Hunyuan-A13B-Instruct",),
    "hunyuan3": ("tencent/Hy3-preview",),
    "apertus": ("swiss-ai/Apertus-8B-Instruct-2509",),
    "ernie45": ("baidu/ERNIE-4.5-21B-A3B-PT",),
    "ernie45_thinking": ("baidu/ERNIE-4.5-21B-A3B-Thinking",),
    "minimax_m1": ("MiniMaxAI/MiniMax-M1-80k",),
    "minimax_m2": (
        "MiniMaxAI/MiniMax-M2",
        "MiniMaxAI/MiniMax-M2.5",
        "minimax/minimax-m2.1",
        "minimax-m2:cloud",
        "minimax.minimax-m2",
    ),
    "minimax_m3": ("MiniMaxAI/MiniMax-M3",),
    "longcat": ("meituan-longcat/LongCat-Flash-Chat",),
    "mimo": ("XiaomiMiMo/MiMo-7B-RL",),
    "reframr": ("OkeyMeta/Reframr-RFM-v2",),
    "firefunction": ("fireworks-ai/llama-3-firefunction-v2",),
    "llama3": (
        "meta-llama/Llama-3.1-8B-Instruct",
        "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8",
        "meta-llama/Llama-3.2-3B-Instruct",
        "llama3.2:1b",
        "llama3.1:8b",
        "llama-3.3-70b-versatile",
    ),
    "llama4": (
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "meta-llama/llama-4-maverick",
        "llama4:scout",
    ),
    "mistral": (
        "mistralai/Mistral-7B-Instruct-v0.3",
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "mistralai/Magistral-Small-2509",
        "mistralai/Ministral-3-14B-Instruct-2512",
        "mistralai/Devstral-Small-2507",
        "mistral-nemo:12b",
        "mistral-large-latest",
    ),
    "deepseek_r1": (
        "us.deepseek.r1-v1:0",
        "deepseek-ai/DeepSeek-R1",
        "deepseek-ai/DeepSeek-R1-0528",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "deepseek-r1:8b",
    ),
    "deepseek_v3": (
        "deepseek-ai/DeepSeek-V3",
        "deepseek-ai/DeepSeek-V3-0324",
    ),
    "deepseek_v31": (
        "deepseek-ai/DeepSeek-V3.1",
        "deepseek-ai/DeepSeek-V3.1-Terminus",
        "deepseek-v3.1:671b",
    ),
    "deepseek_v32": (
        "deepseek-ai/DeepSeek-V3.2",
        "deepseek-ai/DeepSeek-V3.2-Exp",
        "deepseek/deepseek-v4-flash",
        "accounts/fireworks/models/deepseek-v3p2",
    ),
    "kimi_k2": (
        "moonshotai/Kimi-K2-Instruct-0905",
        "moonshotai/Kimi-K2-Thinking",
        "kimi-k2:1t-cloud",
    ),
    "kimi_k25": ("moonshotai/Kimi-K2.5",),
    "think": ("moonshotai/Kimi-VL-A3B-Thinking-2506",),
    "command_a": (
        "CohereLabs/c4ai-command-r7b-12-2024",
        "CohereLabs/c4ai-command-a-03-2025",
        "CohereLabs/command-a-reasoning-08-2025",
    ),
    "command_r": ("command-r:35b",),
    "functionary_v31": ("meetkai/functionary-medium-v3.1",),
    "functionary_v32": ("meetkai/functionary-small-v3.2",),
    "olmo3": ("allenai/Olmo-3-7B-Instruct",),
    "olmo3_think": ("allenai/Olmo-3-32B-Think",),
    "lfm2": (
        "LiquidAI/LFM2-1.2B-Tool",
        "LiquidAI/LFM2.5-1.2B-Instruct",
    ),
    "glm45": (
        "zai-org/GLM-4.5-Air",
        "zai-org/GLM-4.6",
        "z-ai/glm-4.6:exacto",
        "bartowski/zai-org_GLM-4.5-Air-GGUF",
        "accounts/fireworks/models/glm-4p6",
    ),
    "laguna": ("poolside/Laguna-XS.2",),
    "iquest": ("IQuestLab/IQuest-Q1",),
    "glm47": (
        "zai-org/GLM-4.7-Flash",
        "glm-4.7-flash:latest",
        "zai-org/GLM-5",
        "inclusionAI/Ling-3.0-flash",
        "iFlytek/Spark2.5",
    ),
    "seed_oss": (
        "ByteDance-Seed/Seed-OSS-36B-Instruct",
        "mlx-community/Seed-OSS-36B-Instruct-4bit",
    ),
    "step3": ("stepfun-ai/step3",),
    "step3p5": ("stepfun-ai/Step-3.5-Flash",),
    "gpt_oss": (
        "openai/gpt-oss-20b",
        "gpt-oss:120b",
        "openai/gpt-oss-20b:free",
        "ggml-org/gpt-oss-20b-GGUF",
        "bartowski/openai_gpt-oss-20b-GGUF",
        "openai.gpt-oss-120b-1:0",
    ),
    "gemma3": (
        "google/gemma-3-27b-it",
        "gemma3:4b",
        "gemma3n:e4b",
    ),
    "functiongemma": (
        "google/functiongemma-270m-it",
        "functiongemma:latest",
    ),
    "gemma4": (
        "google/gemma-4-31B-it",
        "gemma4:e2b",
        "lmstudio-community/gemma-4-E4B-it-GGUF",
    ),
    "minicpm5": ("openbmb/MiniCPM5-1B",),
    "minicpm3": ("openbmb/MiniCPM3-4B",),
    "hunyuan4": ("tencent/Hy4-preview", "Hunyuan-4-A20B"),
    "sarashina": ("sbintuitions/sarashina2.2-3b-instruct-v0.1",),
    "gigachat3": ("ai-sage/GigaChat3-10B-A1.8B",),
    "gigachat35": ("ai-sage/GigaChat3.5-432B-A28B",),
    "dots": ("rednote-hilab/dots.llm1.inst",),
    "apriel16": ("ServiceNow-AI/Apriel-1.6-15b-Thinker",),
    "inkling": ("thinkingmachines/Inkling",),
    "cwm": ("facebook/cwm", "cwm-sft"),
    "minicpm_v": ("openbmb/MiniCPM-V-4_6", "minicpm-v:8b"),
    "rwkv": ("BlinkDL/rwkv7-g1-13.3b", "rwkv-7-world"),
    "step_audio2": ("stepfun-ai/Step-Audio-2-mini",),
    "telechat4": ("TeleAI/TeleChat4-36B",),
    "muse_glimmer": ("muse-glimmer:latest", "meta/muse-spark-1.2"),
    "plamo3": ("pfnet/plamo-3-nict-8b-base",),
    "apriel": ("ServiceNow-AI/Apriel-1.5-15b-Thinker",),
    "pangu": ("FreedomIntelligence/openPangu-Embedded-7B-V1.1",),
    "hyperclovax": ("naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",),
    "json": ("MadeAgents/Hammer2.1-7b",),
    "north": ("CohereLabs/command-a-plus",),
    "pythonic": (
        "Team-ACE/ToolACE-2-Llama-3.1-8B",
        "watt-ai/watt-tool-8B",
    ),
    "kimi_k3": ("moonshotai/Kimi-K3",),
    "k2_horizon": ("LLM360/K2-Horizon",),
    "solar_open2": ("upstage/Solar-Open2-100B",),
}
"""Row -> names of models that are of its family."""

UNKNOWN: Final = (
    "THUDM/glm-4-9b-chat",
    "gpt-4o",
    "gpt-5.2",
    "claude-sonnet-4-5",
    "gemini-2.5-pro",
    "grok-4",
    "text-embedding-3-small",
    "nomic-embed-text:latest",
    "distilgpt2",
    "tinyllama:1.1b",
    "EleutherAI/pythia-70m",
    "qwen-embedding",
)
"""Names that tell nothing: their models have an API of their own for calls, or no calls at all."""


@pytest.mark.parametrize(
    ("model", "row"), [pytest.param(model, row, id=model) for row, models in KNOWN.items() for model in models]
)
def test_a_name_tells_the_family(model: str, row: str) -> None:
    found = registry.for_model(model)
    assert found is not None
    assert found.name == row


@pytest.mark.parametrize("model", UNKNOWN)
def test_a_name_tells_nothing(model: str) -> None:
    assert registry.for_model(model) is None


def test_every_family_that_has_names_is_found_by_one() -> None:
    named = {name for name in registry.names() if registry.get(name).models}
    assert named - set(KNOWN) == set()
