# The gateway as a container image; docs/deploy.md says how it is built, run and checked.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=0.2.0 --tag xenoglot:0.2.0 .
#
# No step compiles anything or names a processor: every platform of the base image and of the locked wheels works.

# Pinned by the digest of its multi-platform index. Change tag and digest together.
ARG PYTHON=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
# `yes` puts the weights of the embedded model (94 MB) into the image; `no` leaves them to the volume.
ARG WEIGHTS=no

FROM ${PYTHON} AS wheel
WORKDIR /src
RUN ["python", "-m", "venv", "/opt/build"]
COPY requirements/build.txt requirements/
RUN ["/opt/build/bin/python", "-m", "pip", "install", "--no-cache-dir", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", "requirements/build.txt"]
COPY pyproject.toml README.md LICENSE ./
COPY scripts/wheel_data.py scripts/
COPY src src
# git is not in the build, so the tag's version is an argument.
ARG VERSION=0.1.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION=${VERSION}
RUN ["/opt/build/bin/python", "-m", "hatchling", "build", "--target", "wheel", "--directory", "/wheels"]

FROM ${PYTHON} AS install
WORKDIR /src
RUN ["python", "-m", "venv", "/opt/xenoglot"]
# Before the wheel: this layer changes only with the lock.
COPY requirements/run.txt requirements/
RUN ["/opt/xenoglot/bin/python", "-m", "pip", "install", "--no-cache-dir", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", "requirements/run.txt"]
COPY --from=wheel /wheels /wheels
RUN ["/opt/xenoglot/bin/python", "-m", "pip", "install", "--no-cache-dir", "--no-index", "--no-deps", "--find-links", "/wheels", "xenoglot"]
# The only place that the gateway writes to. Compose and Kubernetes mount a volume there.
# hadolint ignore=DL3059
RUN ["install", "--directory", "--owner", "10001", "--group", "10001", "--mode", "0750", "/data"]

FROM install AS weights
RUN ["env", "XENOGLOT_MODELS=/models", "/opt/xenoglot/bin/xenoglot", "pull"]

FROM ${PYTHON} AS runtime-weights-no
COPY --from=install /opt/xenoglot /opt/xenoglot
COPY --from=install --chown=10001:10001 /data /var/lib/xenoglot
ENV XENOGLOT_MODELS=/var/lib/xenoglot/models

FROM runtime-weights-no AS runtime-weights-yes
COPY --from=weights /models /usr/share/xenoglot/models
ENV XENOGLOT_MODELS=/usr/share/xenoglot/models

# One of the two stages above, so it has no tag.
# hadolint ignore=DL3006
FROM runtime-weights-${WEIGHTS} AS gateway
LABEL org.opencontainers.image.title="xenoglot" \
      org.opencontainers.image.description="Gateway that translates between the OpenAI, Anthropic, Gemini and Ollama APIs" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/xenoglot/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/var/lib/xenoglot \
    XDG_DATA_HOME=/var/lib/xenoglot
# A number, so that Kubernetes can tell that it is not root.
USER 10001:10001
WORKDIR /var/lib/xenoglot
VOLUME /var/lib/xenoglot
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s CMD ["xenoglot", "health"]
# No shell in between: SIGTERM reaches the gateway, which drains for `drain_seconds`.
ENTRYPOINT ["xenoglot"]
CMD ["serve", "--config", "/etc/xenoglot/xenoglot.toml", "--host", "0.0.0.0"]
