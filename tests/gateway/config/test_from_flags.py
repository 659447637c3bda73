"""Sign-in by flags: the way, settings of the provider, options of the sign-in, and the endpoint of a model."""

from __future__ import annotations

import pytest

from xenoglot.cli import main
from xenoglot.errors import MISUSE, ConfigurationError
from xenoglot.gateway.config.from_flags import FLAGS_UPSTREAM, from_flags
from xenoglot.gateway.config.provider_defaults import dialect_of


@pytest.mark.parametrize(
    ("flags", "dialect", "url"),
    [
        pytest.param(
            {"upstream": "vertex", "model": "claude-sonnet-4-5@20250929", "setting": ["project=acme"]},
            ("messages", "/models/{+model}:rawPredict", "google"),
            "https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/anthropic",
            id="claude-on-vertex",
        ),
        pytest.param(
            {"upstream": "vertex", "model": "gemini-3-pro", "setting": ["project=acme", "location=europe-west1"]},
            ("gemini", "/v1beta/models/{model}:generateContent", "google"),
            "https://europe-west1-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west1/publishers/google",
            id="gemini-in-a-region",
        ),
        pytest.param(
            {"upstream": "vertex", "model": "meta/llama-4-maverick", "setting": ["project=acme", "location=us"]},
            ("chat", "/v1/chat/completions", "google"),
            "https://aiplatform.us.rep.googleapis.com/v1/projects/acme/locations/us/endpoints/openapi",
            id="llama-in-a-multi-region",
        ),
        pytest.param(
            {"upstream": "azure", "auth": "azure", "model": "claude-opus-4-5", "setting": ["resource=acme"]},
            ("messages", "/v1/messages", "azure"),
            "https://acme.services.ai.azure.com/anthropic",
            id="claude-on-foundry",
        ),
        pytest.param(
            {"upstream": "azure", "auth": "azure", "model": "gpt-5", "setting": ["resource=acme"]},
            ("responses", "/v1/responses", "azure"),
            "https://acme.openai.azure.com/openai/v1",
            id="gpt-on-azure",
        ),
        pytest.param(
            {"upstream": "bedrock", "auth": "aws", "model": "eu.anthropic.claude-sonnet-4-5", "setting": ["region=r1"]},
            ("converse", "/model/{model}/converse", "aws"),
            "https://bedrock-runtime.r1.amazonaws.com",
            id="claude-on-bedrock",
        ),
        pytest.param(
            {"upstream": "bedrock", "auth": "aws", "model": "openai.gpt-oss-20b-1:0", "setting": ["region=r1"]},
            ("chat", "/v1/chat/completions", "aws"),
            "https://bedrock-runtime.r1.amazonaws.com/openai/v1",
            id="gpt-oss-on-bedrock",
        ),
        pytest.param(
            {
                "upstream": "bedrock",
                "auth": "aws",
                "model": "anthropic.x",
                "dialect": "claude",
                "setting": ["region=r1"],
            },
            ("messages", "/v1/messages", "aws"),
            "https://bedrock-mantle.r1.api.aws/anthropic",
            id="the-dialect-stands-first",
        ),
        pytest.param(
            {"upstream": "anthropic", "auth": "client"},
            ("messages", "/v1/messages", "client"),
            "https://api.anthropic.com",
            id="the-clients-own",
        ),
    ],
)
def test_flags_name_a_cloud_and_a_model(flags: dict[str, object], dialect: tuple[str, str, str], url: str) -> None:
    upstream = from_flags({}, **flags).upstreams[FLAGS_UPSTREAM]  # type: ignore[arg-type]
    found = dialect_of(upstream)
    assert (found.name, found.path, upstream.auth) == dialect
    assert (upstream.base_url, upstream.key_env) == (url, None)


def test_variables_stand_for_settings() -> None:
    environ = {"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "eu"}
    url = from_flags(environ, upstream="vertex").upstreams[FLAGS_UPSTREAM].base_url
    assert url == "https://aiplatform.eu.rep.googleapis.com/v1/projects/acme/locations/eu/publishers/google"


def test_options_of_the_sign_in_are_settings_too() -> None:
    said = ["scopes=https://ai.azure.com/.default", "managed_identity=true", "client_id=c1"]
    options = from_flags({}, upstream="https://models.example", auth="azure", setting=said).upstreams[FLAGS_UPSTREAM]
    assert options.sign_in.chosen == ("scopes", "client_id", "managed_identity")
    assert (options.sign_in.scopes, options.sign_in.managed_identity) == (("https://ai.azure.com/.default",), True)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param(
            {"upstream": "vertex"},
            "the command line: --setting project=...: required by `vertex`, the id of the project: write it here, or "
            "set the environment variable GOOGLE_CLOUD_PROJECT",
            id="no-project",
        ),
        pytest.param(
            {"upstream": "vertex", "setting": ["projekt=acme"]},
            "--setting: found `projekt`; expected one of project, location, host, scopes, credentials_file, "
            "quota_project",
            id="no-such-setting",
        ),
        pytest.param(
            {"upstream": "https://models.example", "setting": ["region=r1"]},
            "--setting: found `region`; neither the server nor its sign-in has settings",
            id="settings-of-a-url",
        ),
        pytest.param(
            {"upstream": "https://models.example", "auth": "aws", "setting": ["region"]},
            "--setting: found `region`; expected NAME=VALUE",
            id="no-value",
        ),
        pytest.param(
            {"auth": "google", "setting": ["project=a"]},
            "--auth, --setting: no server is chosen; name one with `--upstream URL` or `--upstream PROVIDER`",
            id="no-server",
        ),
        pytest.param(
            {"upstream": "groq", "auth": "aws", "key_env": "KEY"},
            'the command line: --key-env: not used with `auth = "aws"`; remove one of them',
            id="a-key-too",
        ),
        pytest.param(
            {"upstream": "bedrock", "setting": ["region=r1"]},
            'the command line: --key-env: the environment variable "AWS_BEARER_TOKEN_BEDROCK" is not set; or sign in '
            'without a key: `auth = "aws"` (`--auth aws`)',
            id="neither-key-nor-sign-in",
        ),
    ],
)
def test_mistakes_name_the_flag(flags: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_flags({"KEY": "k"}, **flags)  # type: ignore[arg-type]
    assert str(caught.value) == problem


def test_serve_has_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--upstream", "https://models.example", "--dialect", "messages", "--auth", "anthropic-identity"]
    options = ["--setting", "federation_rule=fdrl_1", "--setting", "token_file=/var/run/token"]
    assert main(["serve", *flags, *options, "--print-config"]) == 0
    shown = capsys.readouterr().out
    assert '"auth": "anthropic_identity"' in shown
    assert '"federation_rule": "fdrl_1"' in shown
    assert main(["ask", "Hi", "--upstream", "anthropic", "--auth", "client"]) == MISUSE
    assert "argument --auth: invalid choice" in capsys.readouterr().err
