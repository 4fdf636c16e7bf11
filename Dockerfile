# Serves one agent. Try it with the built-in example, and look at it at http://localhost:8000/inspector:
#
#   docker build -t statecast .
#   docker run --rm -p 8000:8000 statecast demo
#
# Your own agent, in an image of its own:
#
#   FROM statecast
#   COPY planner.py .
#   ENV STATECAST_AGENT=planner:Planner
#
# or, without building one: docker run -v ./planner.py:/app/planner.py:ro -p 8000:8000 statecast serve planner:Planner
# Every option of `statecast serve` is an environment variable too: --max-runs is STATECAST_MAX_RUNS. Set the port by PORT
# or STATECAST_PORT, where the health check finds it. Nothing is written to the file system.

FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src src
# The environment gets no pip: the one of this stage installs into it.
RUN python -m venv --without-pip /opt/statecast \
 && python -m pip --python /opt/statecast/bin/python install --no-cache-dir ".[inspector]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin statecast
COPY --from=build /opt/statecast /opt/statecast
ENV PATH=/opt/statecast/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STATECAST_HOST=0.0.0.0 \
    STATECAST_AGENT=statecast.demo:Planner
WORKDIR /app
# A number, so that an orchestrator can see that it is not root.
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as http; port = os.environ.get('STATECAST_PORT') or os.environ.get('PORT') or '8000'; http.urlopen(f'http://127.0.0.1:{port}/health', timeout=4)"]
# The server is process 1 and gets SIGTERM itself: runs end as cancelled, and it exits with 0.
ENTRYPOINT ["statecast"]
CMD ["serve"]
